"""Apply the defaults of a structural schema, as the API server does before admission."""

from functools import cache
from typing import Any

from config.api.meta import CustomResource
from config.crds import kinds, schema
from kube.resource import JsonObject


def fill_crd_defaults(object: dict[str, Any]) -> dict[str, Any]:
    """Return one of Gatewright's custom resources with its CRD's defaults.

    Any other object unchanged.
    """
    kind = _types().get((str(object.get("apiVersion")), str(object.get("kind"))))
    return object if kind is None else defaulted_as(kind, object)


def defaulted_as(kind: type[CustomResource], object: dict[str, Any]) -> dict[str, Any]:
    """Return a custom resource with the defaults of its type's CRD."""
    filled: dict[str, Any] = fill_defaults(object, _schema(kind))
    return filled


@cache
def _types() -> dict[tuple[str, str], type[CustomResource]]:
    return {(kind.definition.api_version, kind.definition.kind): kind for kind in kinds()}


# Only of the kinds that are read: a schema takes 20 ms.
_schema = cache(schema)


def fill_defaults(value: Any, schema: JsonObject) -> Any:
    """Return a value with the schema's defaults for fields that are absent, or null.

    As the API server fills them in for custom resources
    (https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#defaulting).
    """
    if isinstance(value, list) and "items" in schema:
        return [fill_defaults(item, schema["items"]) for item in value]
    if not isinstance(value, dict):
        return value
    properties = schema.get("properties", {})
    others = schema.get("additionalProperties")
    others = others if isinstance(others, dict) else {}
    present = {
        key: item
        for key, item in value.items()
        if item is not None or "default" not in properties.get(key, {})
    }
    missing = {
        key: property["default"]
        for key, property in properties.items()
        if "default" in property and key not in present
    }
    return {
        key: fill_defaults(item, properties.get(key, others))
        for key, item in (present | missing).items()
    }
