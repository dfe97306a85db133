"""Decides, as an API server does, whether a webhook configuration matches a request."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

from config.api.match import LabelSelector
from kube.resource import JsonObject
from webhook.cel import Program
from webhook.cel.admission_environment import ADMISSION
from webhook.engine.kinds import Kind
from webhook.engine.match import compile_selector
from webhook.engine.request import NAME_LABEL


@dataclass(frozen=True)
class Sent:
    """A request as the API server sees it before it calls webhooks; `labels` are those of the namespace."""

    kind: Kind
    namespace: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    subresource: str = ""
    operation: str = "CREATE"
    user: str = "somebody"
    groups: tuple[str, ...] = ("system:authenticated",)


def webhooks_for(request: Sent, webhooks: list[JsonObject]) -> list[str]:
    """Return the names of the webhooks that the request is sent to."""
    return [each["name"] for each in webhooks if is_sent(request, each)]


def is_sent(request: Sent, webhook: JsonObject) -> bool:
    """Return whether rules, namespaceSelector and matchConditions of a webhook match a request."""
    resource = "/".join(filter(None, (request.kind.plural, request.subresource)))
    has_rule = any(
        request.kind.group in rule["apiGroups"]
        and resource in rule["resources"]
        and request.operation in rule["operations"]
        for rule in webhook["rules"]
    )
    return (
        has_rule and in_selected_namespace(request, webhook) and conditions_hold(request, webhook)
    )


def in_selected_namespace(request: Sent, webhook: JsonObject) -> bool:
    """Return whether the namespaceSelector matches; it matches every cluster-scoped object."""
    if not request.namespace:
        return True
    selector = compile_selector(LabelSelector.model_validate(webhook["namespaceSelector"]))
    return selector({**request.labels, NAME_LABEL: request.namespace})


def conditions_hold(request: Sent, webhook: JsonObject) -> bool:
    """Return whether all matchConditions are true."""
    asked: JsonObject = {
        "userInfo": {"username": request.user, "groups": list(request.groups)},
        "resource": {"group": request.kind.group, "version": "v1", "resource": request.kind.plural},
        "operation": request.operation,
    }
    if request.subresource:
        asked["subResource"] = request.subresource
    if request.namespace:
        asked["namespace"] = request.namespace
    activation = ADMISSION.activation({"request": asked})
    conditions = webhook.get("matchConditions") or []
    return all(compiled(each["expression"]).evaluate(activation) for each in conditions)


@cache
def compiled(expression: str) -> Program:
    """Compile a condition."""
    return ADMISSION.compile(expression, "bool")
