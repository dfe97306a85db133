"""The CEL variables `request` and `namespaceObject` of a request.

Source: CreateAdmissionRequest and CreateNamespaceObject of k8s.io/apiserver/pkg/admission/plugin/cel.
"""

from collections.abc import Mapping
from typing import Any

import orjson

from webhook.cel import EvaluationError
from webhook.engine.kinds import NAMESPACES
from webhook.engine.request import NAMESPACE, Request

NAMESPACE_METADATA = (
    *("name", "generateName", "namespace", "uid", "resourceVersion", "generation", "labels", "annotations"),
    *("creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "finalizers"),
)
Object = Mapping[str, Any]


class Partial(dict[str, Any]):
    """An object of which some fields are unknown: reading one is an error, never an empty answer."""

    def __init__(self, name: str, known: Object, *unknown: str) -> None:
        super().__init__(known)
        self.name = name
        self.unknown = frozenset(unknown)

    def __missing__(self, key: str) -> Any:
        if key in self.unknown:
            raise EvaluationError(f"{self.name}.{key} is known to the API server only")
        raise KeyError(key)

    def __contains__(self, key: object) -> bool:
        return super().__contains__(self[str(key)] if key in self.unknown else key)


def namespace_object(request: Request) -> Object | None:
    """Return the namespace of the object; None for what has none. Where it was not looked up, its labels are known."""
    attributes = request.attributes
    if not attributes.namespace or (attributes.resource_group, attributes.resource) == NAMESPACES:
        return None
    whole = request.looked_up.get(NAMESPACE)
    if whole is not None:
        metadata = {key: whole["metadata"][key] for key in NAMESPACE_METADATA if key in whole["metadata"]}
        return {"metadata": metadata, **{key: whole[key] for key in ("spec", "status") if key in whole}}
    labels = dict(request.namespace_labels())
    known = {"name": attributes.namespace, **({"labels": labels} if labels else {})}
    metadata = Partial("namespaceObject.metadata", known, *(set(NAMESPACE_METADATA) - {"labels"}))
    return Partial("namespaceObject", {"metadata": metadata}, "spec", "status")


def admission_request(request: Request) -> Object:
    """Return the variable `request`. What only the API server knows is an error where it did not send the request."""
    attributes, sent = request.attributes, request.attributes.sent
    kind = {"group": attributes.group, "version": attributes.version, "kind": attributes.kind}
    resource = {
        "group": attributes.resource_group,
        "version": attributes.version,
        "resource": attributes.resource,
    }
    group, version, name = attributes.requested or tuple(kind.values())
    user = {"username": attributes.username, "groups": list(attributes.groups)}
    known = {
        "kind": kind,
        "resource": resource,
        "requestKind": {"group": group, "version": version, "kind": name},
        "requestResource": resource | {"group": group, "version": version},
        "name": attributes.name,
        "namespace": attributes.namespace,
        "operation": attributes.operation,
        "userInfo": Partial("request.userInfo", user, "uid", "extra"),
        "dryRun": attributes.dry_run,
        "subResource": attributes.subresource,
        "requestSubResource": attributes.subresource,
    }
    if sent is None:
        metadata = request.value.get("metadata")
        known["name"] = attributes.name or (metadata.get("name") if isinstance(metadata, dict) else None)
        return Partial("request", _given(known), "options")
    if sent.user_info is not None:
        user |= {"uid": sent.user_info.uid, "extra": orjson.loads(memoryview(sent.user_info.extra))}
    known["requestResource"] = orjson.loads(memoryview(sent.request_resource)) or known["requestResource"]
    return _given(known | {"userInfo": _given(user), "options": orjson.loads(memoryview(sent.options))})


def _given(fields: Object) -> dict[str, Any]:
    """Return the fields that have a value: Go leaves out the others."""
    return {name: value for name, value in fields.items() if value not in (None, "")}
