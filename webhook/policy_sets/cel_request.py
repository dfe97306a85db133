"""The CEL variables `request` and `namespaceObject` of a request.

Source: CreateAdmissionRequest and CreateNamespaceObject of
k8s.io/apiserver/pkg/admission/plugin/cel.
"""

from collections.abc import Iterable
from typing import Any

from msgspec import UNSET

from config.built_in_defaults import with_api_defaults
from kube.resource import JsonObject
from webhook.cel import EvaluationError
from webhook.engine.kinds import NAMESPACES
from webhook.engine.request import NAMESPACE, Request


class Partial(dict[str, Any]):
    """An object of which only some fields are known; reading another field is an error."""

    def __init__(self, name: str, known: JsonObject, absent: Iterable[str] = ()) -> None:
        """Take the object's name, its `known` fields, and those `absent` unless known."""
        super().__init__(known)
        self.name = name
        self.absent = frozenset(absent)

    def __missing__(self, key: str) -> Any:
        if key in self.absent:
            raise KeyError(key)
        raise EvaluationError(f"{self.name}.{key} is known to the API server only")

    def __contains__(self, key: object) -> bool:
        return super().__contains__(key) or (key not in self.absent and bool(self[str(key)]))


def is_as_sent(request: Request) -> bool:
    """Return whether a request comes from the API server, which sends objects with defaults."""
    sent = request.attributes.sent
    return sent is not None and sent.options is not UNSET  # the API server always sends options


def fill_defaults(request: Request) -> tuple[JsonObject | None, JsonObject | None]:
    """Return object and old object, with the API's defaults if the API server did not send them."""
    if request.completed is None:
        object, old = request.object, request.old_object
        if not is_as_sent(request):
            object = None if object is None else with_api_defaults(object)
            old = None if old is None else with_api_defaults(old)
        request.completed = object, old
    return request.completed


def namespace_object(request: Request) -> JsonObject | None:
    """Return the object's namespace, or its known fields; None for a cluster-scoped object."""
    attributes = request.attributes
    if not attributes.namespace or (attributes.resource_group, attributes.resource) == NAMESPACES:
        return None
    whole: JsonObject | None = request.looked_up.get(NAMESPACE)
    if whole is not None:
        return whole
    labels = dict(request.namespace_labels())
    fields = _drop_empty({"name": attributes.namespace, "labels": labels or None})
    metadata = Partial("namespaceObject.metadata", fields, ["labels"])
    return Partial("namespaceObject", {"metadata": metadata})


def admission_request(request: Request) -> JsonObject:
    """Return the variable `request`. Outside a cluster, reading unknown fields is an error."""
    attributes, sent = request.attributes, request.attributes.sent
    kind = {"group": attributes.group, "version": attributes.version, "kind": attributes.kind}
    resource = {
        "group": attributes.resource_group,
        "version": attributes.version,
        "resource": attributes.resource,
    }
    group, version, name = attributes.requested or tuple(kind.values())
    user = {"username": attributes.username, "groups": list(attributes.groups)}
    fields = {
        "kind": kind,
        "resource": resource,
        "requestKind": {"group": group, "version": version, "kind": name},
        "requestResource": resource | {"group": group, "version": version},
        "name": attributes.name,
        "namespace": attributes.namespace,
        "operation": attributes.operation,
        "userInfo": Partial("request.userInfo", user),
        "dryRun": attributes.dry_run,
        "subResource": attributes.subresource,
        "requestSubResource": attributes.subresource,
    }
    if not is_as_sent(request):
        metadata = request.value.get("metadata")
        if not attributes.name and isinstance(metadata, dict):
            fields["name"] = metadata.get("name")
        return Partial("request", _drop_empty(fields), fields)
    if sent.user_info is not None:
        user |= {"uid": sent.user_info.uid, "extra": sent.user_info.extra}
    fields["requestResource"] = sent.request_resource or fields["requestResource"]
    return _drop_empty(fields | {"userInfo": _drop_empty(user), "options": sent.options})


def _drop_empty(fields: JsonObject) -> dict[str, Any]:
    """Return the fields that have a value: the API server's encoder (Go) omits the others."""
    return {name: value for name, value in fields.items() if value not in (None, "")}
