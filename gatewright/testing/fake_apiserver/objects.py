"""Read, admit, patch, compare and copy objects before they are stored."""

import base64
from typing import Any

import orjson

from config.defaulting import fill_defaults
from gatewright.testing.fake_apiserver.definitions import ServedResource
from gatewright.testing.fake_apiserver.refusals import StatusError, invalid
from gatewright.testing.fake_apiserver.schema import METADATA, faults, prune
from kube.resource import JsonObject


def parse_object(body: Any, kind: ServedResource, malformed: int = 400) -> JsonObject:
    """Return the object.

    Raises StatusError if its fields contradict the path, or, with the code `malformed`, if metadata
    has a wrong type.
    """
    if not isinstance(body, dict) or not isinstance(body.setdefault("metadata", {}), dict):
        raise StatusError(400, "the body is not an object of the API")
    resource = kind.resource
    expected = (resource.api_version, resource.kind)
    if kind.custom and "kind" not in body:
        raise StatusError(400, "Object 'Kind' is missing in the body")
    if (
        body.setdefault("apiVersion", expected[0]),
        body.setdefault("kind", expected[1]),
    ) != expected:
        raise StatusError(
            400, f"the API version or kind in the data does not match the expected {expected}"
        )
    for field, message in faults(body["metadata"], METADATA, "metadata"):
        raise StatusError(malformed, f"{resource.kind}: {field}: {message}")
    return body


def admit(kind: ServedResource, object: JsonObject) -> JsonObject:
    """Return an object in the form to be stored: with defaults, without unknown fields.

    Raises StatusError if it is invalid.
    """
    if kind.custom:
        object = fill_defaults(prune(object, kind.schema, top=True), kind.schema)
        if causes := list(faults(object, kind.schema)):
            raise invalid(kind.resource.kind, object["metadata"]["name"], *causes)
        return object
    metadata = object["metadata"]
    match kind.resource.kind:
        case "Namespace":
            metadata["labels"] = (metadata.get("labels") or {}) | {
                "kubernetes.io/metadata.name": metadata["name"]
            }
            object.setdefault("status", {"phase": "Active"})
        case "CustomResourceDefinition":
            object.setdefault("status", {"conditions": [{"type": "Established", "status": "True"}]})
        case "Secret":
            texts = object.pop("stringData", {})
            encoded = {
                name: base64.b64encode(text.encode()).decode() for name, text in texts.items()
            }
            if encoded:
                object["data"] = (object.get("data") or {}) | encoded
            object.setdefault("type", "Opaque")
    return object


def desired_part(object: JsonObject) -> Any:
    """Return the part of an object whose changes increase its generation."""
    spec = {name: value for name, value in object.items() if name not in ("metadata", "status")}
    return (spec, object["metadata"].get("annotations")) if object["kind"] == "Deployment" else spec


def merge(value: Any, patch: Any) -> Any:
    """Return a value with a merge patch applied."""
    if not isinstance(patch, dict):
        return patch
    result = dict(value) if isinstance(value, dict) else {}
    for name, change in patch.items():
        if change is None:
            result.pop(name, None)
        else:
            result[name] = merge(result.get(name), change)
    return result


def copy(object: JsonObject) -> JsonObject:
    """Return a deep copy."""
    copied: JsonObject = orjson.loads(orjson.dumps(object))
    return copied
