"""Decide whether the API server calls a webhook for a request, as its dispatcher does.

Source: k8s.io/apiserver/pkg/admission/plugin/webhook (rules, predicates, matchconditions).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, NoReturn

from config.api.admission import ResourceRule
from gatewright.tools.doctor.models import AdmissionWebhook
from gatewright.tools.doctor.state import ClusterState
from webhook.cel.admission_environment import ADMISSION as NAMES
from webhook.cel.errors import CelError, EvaluationError
from webhook.cel.program import Program
from webhook.engine.match import Labels, compile_selector


@dataclass(frozen=True, slots=True, kw_only=True)
class ExampleRequest:
    """A possible request; `meaning` is its effect, for messages.

    `labels` are those that its object has, or may have.
    """

    operation: str
    resource: str
    meaning: str = ""
    group: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    user: str = "system:apiserver"
    groups: tuple[str, ...] = ("system:authenticated",)
    labels: tuple[Labels, ...] = ({},)

    @property
    def scope(self) -> str:
        """The scope of the resource, as in rules."""
        is_namespaced = self.namespace and self.resource != "namespaces"
        return "Namespaced" if is_namespaced else "Cluster"

    @property
    def target(self) -> str:
        """The resource and subresource, with the group."""
        sub = f"/{self.subresource}" if self.subresource else ""
        return f"{self.resource}{sub}{f'.{self.group}' if self.group else ''}"

    def __str__(self) -> str:
        return f"{self.operation} {self.target}{f' in {self.namespace}' if self.namespace else ''}"


def is_called(webhook: AdmissionWebhook, request: ExampleRequest, state: ClusterState) -> bool:
    """Return whether the API server would call `webhook` for `request`.

    A condition that cannot be evaluated counts as true: a false finding is better than a missing
    one.
    """
    selector = webhook.namespace_selector
    return (
        is_named(webhook, request)
        and (not selector or not request.namespace or state.selects(selector, request.namespace))
        and any(_is_accepted(webhook, request, labels) for labels in request.labels)
    )


def is_named(webhook: AdmissionWebhook, request: ExampleRequest) -> bool:
    """Return whether the rules of a webhook match a request for the version v1 of a resource."""
    return any(
        names(rule, request)
        and rule.scope in ("*", request.scope)
        and _has(rule.api_versions, "v1")
        for rule in webhook.rules
    )


def names(rule: ResourceRule, request: ExampleRequest) -> bool:
    """Return whether a rule matches the resource and operation of a request, in any scope."""
    return (
        _has(rule.operations, request.operation)
        and _has(rule.api_groups, request.group)
        and any(_names_resource(each, request) for each in rule.resources)
    )


def named_requests(rule: ResourceRule) -> Iterator[ExampleRequest]:
    """Yield the requests that a rule names without a wildcard."""
    for operation in {"CREATE", "UPDATE"} if "*" in rule.operations else rule.operations:
        for group in rule.api_groups:
            for resource in rule.resources:
                if "*" not in group + resource:
                    plural, _, sub = resource.partition("/")
                    yield ExampleRequest(
                        operation=operation, group=group, resource=plural, subresource=sub
                    )


def _has(words: list[str], word: str) -> bool:
    return "*" in words or word in words


def _names_resource(resource: str, request: ExampleRequest) -> bool:
    plural, _, subresource = resource.partition("/")
    return plural in ("*", request.resource) and subresource in (
        ("*", request.subresource) if "/" in resource else (request.subresource,)
    )


def _is_accepted(webhook: AdmissionWebhook, request: ExampleRequest, labels: Labels) -> bool:
    selector = webhook.object_selector
    return (selector is None or compile_selector(selector)(labels)) and all(
        _holds(condition.expression, request, labels) for condition in webhook.match_conditions
    )


class KnownFields(dict[str, Any]):
    """Known fields of a request or an object: an error for a condition that tests another one."""

    def __missing__(self, key: str) -> NoReturn:
        if key in ("labels", "namespace"):
            raise KeyError(key)  # it has none
        raise EvaluationError(f"{key} is unknown")


def _holds(expression: str, request: ExampleRequest, labels: Labels) -> bool:
    program = _compile(expression)
    if program is None:
        return True
    metadata = {"name": request.name, "namespace": request.namespace, "labels": dict(labels)}
    fields = KnownFields({key: value for key, value in metadata.items() if value})
    resource = {"group": request.group, "version": "v1", "resource": request.resource}
    judged = KnownFields(metadata=fields)
    values = {
        "object": judged,
        "oldObject": judged if request.operation == "UPDATE" else None,
        "request": KnownFields(
            fields,
            operation=request.operation,
            resource=resource,
            requestResource=resource,
            subResource=request.subresource,
            namespace=request.namespace,
            userInfo={"username": request.user, "groups": list(request.groups)},
            dryRun=False,
        ),
    }
    try:
        return program.evaluate(NAMES.activation(values)) is not False
    except CelError:
        return True


@cache
def _compile(expression: str) -> Program | None:
    try:
        return NAMES.compile(expression, "bool")
    except CelError:
        return None
