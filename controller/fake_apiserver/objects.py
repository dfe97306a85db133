"""Objects on their way into the storage: admitted, patched, compared, copied."""

import base64
from typing import Any

import orjson

from controller.fake_apiserver.definitions import ServedResource
from controller.fake_apiserver.refusals import invalid
from controller.fake_apiserver.schema import faults, prune
from kube.resource import JsonObject


def admit(kind: ServedResource, object: JsonObject) -> JsonObject:
    """Return an object as it is stored: defaults filled in, unknown fields dropped.

    Or refuse it.
    """
    if kind.custom:
        object = prune(object, kind.schema, top=True)
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


def desired(object: JsonObject) -> Any:
    """Return what of an object counts for its generation."""
    spec = {name: value for name, value in object.items() if name not in ("metadata", "status")}
    return (spec, object["metadata"].get("annotations")) if object["kind"] == "Deployment" else spec


def merged(value: Any, patch: Any) -> Any:
    """Return a value changed by a merge patch."""
    if not isinstance(patch, dict):
        return patch
    result = dict(value) if isinstance(value, dict) else {}
    for name, each in patch.items():
        if each is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), each)
    return result


def copy(object: JsonObject) -> JsonObject:
    """Return a deep copy."""
    copied: JsonObject = orjson.loads(orjson.dumps(object))
    return copied
