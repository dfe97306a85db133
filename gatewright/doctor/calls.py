"""Decide whether the API server calls a webhook for a request, as its dispatcher does.

Source: k8s.io/apiserver/pkg/admission/plugin/webhook (rules, predicates, matchconditions).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

from config.api.admission import ResourceRule
from config.api.match import LabelSelector
from gatewright.doctor.models import AdmissionWebhook
from gatewright.doctor.state import ClusterState
from webhook.cel.admission_environment import ADMISSION as NAMES
from webhook.cel.errors import CelError
from webhook.cel.program import Program
from webhook.engine.match import Labels, compile_selector


@dataclass(frozen=True, slots=True, kw_only=True)
class ExampleRequest:
    """A possible request; `meaning` is its effect, for messages.

    `labels` are those of the object; None if they are unknown, so that any selector may match.
    """

    operation: str
    resource: str
    meaning: str
    group: str = ""
    version: str = "v1"
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    user: str = "system:apiserver"
    groups: tuple[str, ...] = ("system:authenticated",)
    labels: Labels | None = field(default_factory=dict)

    def __str__(self) -> str:
        within = f" in {self.namespace}" if self.namespace else ""
        sub = f"/{self.subresource}" if self.subresource else ""
        group = f".{self.group}" if self.group else ""
        return f"{self.operation} {self.resource}{group}{sub}{within}"


def is_called(webhook: AdmissionWebhook, request: ExampleRequest, state: ClusterState) -> bool:
    """Return whether the API server would call `webhook` for `request`.

    A condition that cannot be evaluated counts as true: a false finding is better than a missing
    one.
    """
    return (
        _selects_namespace(webhook.namespace_selector, request, state)
        and is_named(webhook, request)
        and _selects_object(webhook.object_selector, request)
        and all(_holds(each.expression, request) for each in webhook.match_conditions)
    )


def is_named(webhook: AdmissionWebhook, request: ExampleRequest) -> bool:
    """Return whether the rules of a webhook match the resource and operation of a request."""
    return any(_names(rule, request) for rule in webhook.rules)


def _names(rule: ResourceRule, request: ExampleRequest) -> bool:
    scope = "Namespaced" if request.namespace and request.resource != "namespaces" else "Cluster"
    return (
        _has(rule.operations, request.operation)
        and _has(rule.api_groups, request.group)
        and any(_names_resource(each, request) for each in rule.resources)
        and rule.scope in ("*", scope)
    )


def _names_resource(resource: str, request: ExampleRequest) -> bool:
    plural, _, subresource = resource.partition("/")
    return plural in ("*", request.resource) and subresource in (
        ("*", request.subresource) if "/" in resource else (request.subresource,)
    )


def _has(words: list[str], word: str) -> bool:
    return "*" in words or word in words


def _selects_namespace(
    selector: LabelSelector | None, request: ExampleRequest, state: ClusterState
) -> bool:
    if selector is None or not request.namespace:
        return True
    return state.selects(selector, request.namespace)


def _selects_object(selector: LabelSelector | None, request: ExampleRequest) -> bool:
    if selector is None or request.labels is None:
        return True
    return compile_selector(selector)(request.labels)


def _holds(expression: str, request: ExampleRequest) -> bool:
    program = _compiled(expression)
    if program is None:
        return True
    metadata = {"name": request.name, "labels": dict(request.labels or {})}
    if request.namespace:
        metadata["namespace"] = request.namespace
    values: Mapping[str, object] = {
        "object": {"metadata": metadata},
        "request": {
            "operation": request.operation,
            "resource": _resource(request),
            "requestResource": _resource(request),
            "subResource": request.subresource,
            "name": request.name,
            "namespace": request.namespace,
            "userInfo": {"username": request.user, "groups": list(request.groups)},
            "dryRun": False,
        },
    }
    try:
        return program.evaluate(NAMES.activation(values)) is not False
    except CelError:
        return True


@cache
def _compiled(expression: str) -> Program | None:
    try:
        return NAMES.compile(expression, "bool")
    except CelError:
        return None


def _resource(request: ExampleRequest) -> dict[str, str]:
    return {"group": request.group, "version": request.version, "resource": request.resource}
