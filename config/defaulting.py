"""Apply the defaults of a structural schema, as the API server does before admission."""

from functools import cache
from typing import Any

from config.api.meta import CustomResource
from config.crds import definition, kinds
from kube.resource import JsonObject


def defaulted(object: dict[str, Any]) -> dict[str, Any]:
    """Return one of Gatewright's custom resources with its CRD's defaults.

    Any other object unchanged.
    """
    schema = _schemas().get((str(object.get("apiVersion")), str(object.get("kind"))))
    return object if schema is None else _filled(object, schema)


def defaulted_as(kind: type[CustomResource], object: dict[str, Any]) -> dict[str, Any]:
    """Return a custom resource with the defaults of its type's CRD."""
    filled: dict[str, Any] = _filled(object, _schema(kind))
    return filled


@cache
def _schemas() -> dict[tuple[str, str], JsonObject]:
    return {
        (kind.definition.api_version, kind.definition.kind): version["schema"]["openAPIV3Schema"]
        for kind in kinds()
        for version in definition(kind)["spec"]["versions"]
    }


@cache
def _schema(kind: type[CustomResource]) -> JsonObject:
    (version,) = (
        each
        for each in definition(kind)["spec"]["versions"]
        if each["name"] == kind.definition.version
    )
    return version["schema"]["openAPIV3Schema"]  # type: ignore[no-any-return]


def _filled(value: Any, schema: JsonObject) -> Any:
    """Return `value` with the schema's defaults for absent and null fields."""
    if isinstance(value, list) and "items" in schema:
        return [_filled(item, schema["items"]) for item in value]
    if not isinstance(value, dict):
        return value
    properties = schema.get("properties", {})
    present = {
        key: item
        for key, item in value.items()
        if item is not None or "default" not in properties.get(key, {})
    }
    missing = {
        key: each["default"]
        for key, each in properties.items()
        if "default" in each and key not in present
    }
    return {
        key: _filled(item, properties.get(key, {})) for key, item in (present | missing).items()
    }
