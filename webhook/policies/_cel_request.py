"""CEL variables of a request: `object`, `oldObject`, `request`, `namespaceObject` and the rest."""

from collections.abc import Mapping
from typing import Any

from webhook.cel import Activation, Environment, EvaluationError, Program, Variables
from webhook.cel.library.authorizer import AUTHORIZER
from webhook.engine.request import Attributes, Request


class Partial(dict[str, Any]):
    """The part of an object that is known; reading anything else is an error, never an empty answer."""

    def __init__(self, name: str, **known: Any) -> None:
        super().__init__(known)
        self.name = name

    def __missing__(self, key: str) -> Any:
        raise EvaluationError(f"{self.name}: {key} is known to the API server only")

    def get(self, key: str, default: Any = None) -> Any:
        """Return what is known at `key`."""
        return self[key]

    def __contains__(self, key: object) -> bool:
        return self[key] is not None  # type: ignore[index]


def activation(
    environment: Environment,
    request: Request,
    params: Any,
    variables: Mapping[str, Program],
    object: Any,
    namespace_labels: Mapping[str, str] | None,
) -> Activation:
    """Return the values for the expressions of one policy about one request, and a budget for all of them.

    `namespace_labels` are given where an expression names the namespace.
    """
    lazy = Variables(variables)
    values = {
        "object": object,
        "oldObject": request.old_object,
        "request": admission_request(request.attributes, request.name),
        "params": params,
        "authorizer": AUTHORIZER,
        "variables": lazy,
    }
    if namespace_labels is not None:
        metadata = Partial("namespaceObject.metadata", labels=dict(namespace_labels) or None)
        metadata["name"] = request.attributes.namespace
        values["namespaceObject"] = Partial("namespaceObject", metadata=metadata)
    lazy.activation = environment.activation(values)
    return lazy.activation


def admission_request(attributes: Attributes, name: str) -> dict[str, Any]:
    """Return the variable `request`; an empty subresource is left out, as the API server does."""
    kind = {"group": attributes.group, "version": attributes.version, "kind": attributes.kind}
    resource = {
        "group": attributes.resource_group,
        "version": attributes.version,
        "resource": attributes.resource,
    }
    sent = kind
    if attributes.requested is not None:
        sent = dict(zip(("group", "version", "kind"), attributes.requested, strict=True))
    found: dict[str, Any] = {
        "kind": kind,
        "resource": resource,
        "requestKind": sent,
        "requestResource": resource | {"group": sent["group"], "version": sent["version"]},
        "name": name,
        "namespace": attributes.namespace,
        "operation": attributes.operation,
        "userInfo": Partial("request.userInfo", username=attributes.username, groups=list(attributes.groups)),
        "dryRun": attributes.dry_run,
    }
    if attributes.subresource:
        found["subResource"] = found["requestSubResource"] = attributes.subresource
    return found
