"""Kubernetes' `authorizer`: declared, so that expressions compile; a check is an error, never an answer."""

from typing import Any

from webhook.cel.errors import EvaluationError
from webhook.cel.functions import function
from webhook.cel.values import NAMES

_PACKAGE = "kubernetes.authorization."
_PATH, _GROUP, _RESOURCE = "PathCheck", "GroupCheck", "ResourceCheck"


class Check:
    """The authorizer, or a check that is being built."""

    def __getitem__(self, field: str) -> Any:
        """Return `authorizer.requestResource`, the only field."""
        return _CHECKS[_RESOURCE]


_CHECKS: dict[str, Check] = {}
for _name in ("Authorizer", _PATH, _GROUP, _RESOURCE):
    _kind = type(_name, (Check,), {})
    _CHECKS[_name], NAMES[_kind] = _kind(), f"{_PACKAGE}{_name}"
AUTHORIZER = _CHECKS["Authorizer"]


def _step(target: str, call: str, result: str) -> None:
    function(f"({_PACKAGE}{target}).{call} -> {_PACKAGE}{result}")(lambda *_: _CHECKS[result])


_step("Authorizer", "path(string)", _PATH)
_step("Authorizer", "group(string)", _GROUP)
_step("Authorizer", "serviceAccount(string, string)", "Authorizer")
_step(_GROUP, "resource(string)", _RESOURCE)
for _name in ("subresource", "namespace", "name", "fieldSelector", "labelSelector"):
    _step(_RESOURCE, f"{_name}(string)", _RESOURCE)


@function(*(f"({_PACKAGE}{target}).check(string) -> {_PACKAGE}Decision" for target in (_PATH, _RESOURCE)))
def _check(_: Any, verb: str) -> Any:
    raise EvaluationError(f"authorizer: whether {verb!r} is allowed cannot be decided outside the API server")


@function(*(f"({_PACKAGE}Decision).{call} -> bool" for call in ("allowed()", "errored()")))
@function(*(f"({_PACKAGE}Decision).{call} -> string" for call in ("reason()", "error()")))
def _decision(_: Any) -> Any:
    raise AssertionError
