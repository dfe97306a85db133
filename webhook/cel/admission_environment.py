"""The variables of expressions about admission, as in Kubernetes' own admission policies.

Source:
https://kubernetes.io/docs/reference/access-authn-authz/validating-admission-policy/#cel-variables
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NoReturn

from webhook.cel.cost import NO_MORE
from webhook.cel.errors import EvaluationError
from webhook.cel.functions import declare
from webhook.cel.program import Environment
from webhook.cel.types import Type, parse_type
from webhook.cel.values import NAMES

VARIABLES = "kubernetes.variables"  # the type of `variables`, whose fields are the policy's own

_TYPES: dict[str, dict[str, str]] = {
    "kubernetes.AdmissionRequest": {
        "kind requestKind": "kubernetes.GroupVersionKind",
        "resource requestResource": "kubernetes.GroupVersionResource",
        "subResource requestSubResource name namespace operation": "string",
        "userInfo": "kubernetes.UserInfo",
        "dryRun": "bool",
        "options": "dyn",
    },
    "kubernetes.GroupVersionKind": {"group version kind": "string"},
    "kubernetes.GroupVersionResource": {"group version resource": "string"},
    "kubernetes.UserInfo": {
        "username uid": "string",
        "groups": "list(string)",
        "extra": "map(string, list(string))",
    },
    "kubernetes.Namespace": {
        "metadata": "kubernetes.NamespaceMetadata",
        "spec": "kubernetes.NamespaceSpec",
        "status": "kubernetes.NamespaceStatus",
    },
    "kubernetes.NamespaceMetadata": {
        "name generateName namespace UID resourceVersion": "string",
        "labels annotations": "map(string, string)",
        "creationTimestamp deletionTimestamp": "timestamp",
        "deletionGracePeriodSeconds generation": "int",
        "finalizers": "list(string)",
    },
    "kubernetes.NamespaceSpec": {"finalizers": "list(string)"},
    "kubernetes.NamespaceStatus": {
        "phase": "string",
        "conditions": "list(kubernetes.NamespaceCondition)",
    },
    "kubernetes.NamespaceCondition": {
        "status type message reason": "string",
        "lastTransitionTime": "timestamp",
    },
    "JSONPatch": {"op path from": "string", "value": "dyn"},
    VARIABLES: {},
    "kubernetes.Authorizer": {"requestResource": "kubernetes.ResourceCheck"},
}
_NAMES = {
    "object oldObject params": "dyn",
    "request": "kubernetes.AdmissionRequest",
    "namespaceObject": "kubernetes.Namespace",
    "authorizer": "kubernetes.Authorizer",
    "variables": VARIABLES,
}


def _fields(declared: Mapping[str, str]) -> dict[str, Type]:
    return {name: parse_type(type_) for names, type_ in declared.items() for name in names.split()}


ADMISSION = Environment(
    _fields(_NAMES), {name: _fields(declared) for name, declared in _TYPES.items()}
)


def with_variable(environment: Environment, name: str, type_: Type) -> Environment:
    """Return an environment where expressions can also name `variables.<name>`."""
    variables = {**environment.objects.get(VARIABLES, {}), name: type_}
    return replace(environment, objects={**environment.objects, VARIABLES: variables})


def without_params(environment: Environment) -> Environment:
    """Return an environment where `params` is not declared, for policies that have none."""
    declared = {name: type_ for name, type_ in environment.variables.items() if name != "params"}
    return replace(environment, variables=declared)


class Authorizer:
    """The value of `authorizer`: declared, so that expressions compile; reading it fails."""

    def __getitem__(self, field: str) -> Any:
        """Raise EvaluationError for `authorizer.requestResource`, the only field."""
        _refuse_to_decide()


def _refuse_to_decide(*_: Any) -> NoReturn:
    raise EvaluationError("authorizer: only the API server can check permissions")


AUTHORIZER = Authorizer()
NAMES[Authorizer] = "kubernetes.Authorizer"
_CHECKS = """
    (kubernetes.Authorizer).path(string) -> kubernetes.PathCheck;
    (kubernetes.Authorizer).group(string) -> kubernetes.GroupCheck;
    (kubernetes.Authorizer).serviceAccount(string, string) -> kubernetes.Authorizer;
    (kubernetes.GroupCheck).resource(string) -> kubernetes.ResourceCheck;
    (kubernetes.ResourceCheck).subresource(string) -> kubernetes.ResourceCheck;
    (kubernetes.ResourceCheck).namespace(string) -> kubernetes.ResourceCheck;
    (kubernetes.ResourceCheck).name(string) -> kubernetes.ResourceCheck;
    (kubernetes.ResourceCheck).fieldSelector(string) -> kubernetes.ResourceCheck;
    (kubernetes.ResourceCheck).labelSelector(string) -> kubernetes.ResourceCheck;
    (kubernetes.ResourceCheck).check(string) -> kubernetes.Decision;
    (kubernetes.PathCheck).check(string) -> kubernetes.Decision;
    (kubernetes.Decision).allowed() -> bool; (kubernetes.Decision).errored() -> bool;
    (kubernetes.Decision).reason() -> string; (kubernetes.Decision).error() -> string"""
declare((_CHECKS, _refuse_to_decide, NO_MORE))
