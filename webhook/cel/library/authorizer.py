"""Kubernetes' `authorizer`: declared, so that expressions compile; a check is an error, never an answer."""

from typing import Any

from webhook.cel.errors import EvaluationError
from webhook.cel.functions import function
from webhook.cel.values import Opaque

_A, _PATH, _GROUP, _RESOURCE, _DECISION = (
    f"kubernetes.authorization.{name}"
    for name in ("Authorizer", "PathCheck", "GroupCheck", "ResourceCheck", "Decision")
)


class Check(Opaque):
    """The authorizer, or a check that is being built."""

    def __init__(self, type_name: str) -> None:
        self.type_name = type_name

    def __getitem__(self, field: str) -> "Check":
        """Return `authorizer.requestResource`, its only field."""
        return Check(_RESOURCE)


AUTHORIZER = Check(_A)


def _step(signature: str) -> None:
    result = Check(signature.rpartition(" -> ")[2])
    function(signature)(lambda *_: result)


_step(f"({_A}).path(string) -> {_PATH}")
_step(f"({_A}).group(string) -> {_GROUP}")
_step(f"({_A}).serviceAccount(string, string) -> {_A}")
_step(f"({_GROUP}).resource(string) -> {_RESOURCE}")
for _name in ("subresource", "namespace", "name", "fieldSelector", "labelSelector"):
    _step(f"({_RESOURCE}).{_name}(string) -> {_RESOURCE}")


@function(f"({_PATH}).check(string) -> {_DECISION}", f"({_RESOURCE}).check(string) -> {_DECISION}")
def _check(_: Any, verb: str) -> Any:
    raise EvaluationError(f"authorizer: whether {verb!r} is allowed cannot be decided outside the API server")


@function(f"({_DECISION}).allowed() -> bool", f"({_DECISION}).errored() -> bool")
@function(f"({_DECISION}).reason() -> string", f"({_DECISION}).error() -> string")
def _decision(_: Any) -> Any:
    raise AssertionError
