"""Kubernetes' `authorizer`: declared, so that expressions compile; reading it is an error, never an answer."""

from typing import Any, NoReturn

from webhook.cel.errors import EvaluationError
from webhook.cel.functions import declare
from webhook.cel.values import NAMES


class Authorizer:
    """The value of `authorizer`."""

    def __getitem__(self, field: str) -> Any:
        """Refuse `authorizer.requestResource`, the only field."""
        _undecided()


AUTHORIZER = Authorizer()
NAMES[Authorizer] = _OF = "kubernetes.authorization.Authorizer"
_PATH, _GROUP, _RESOURCE, _DECISION = (
    f"kubernetes.authorization.{name}" for name in ("PathCheck", "GroupCheck", "ResourceCheck", "Decision")
)
_STEPS = ("subresource", "namespace", "name", "fieldSelector", "labelSelector")


def _undecided(*_: Any) -> NoReturn:
    raise EvaluationError("authorizer: what is allowed cannot be decided outside the API server")


declare(
    (f"({_OF}).path(string) -> {_PATH}; ({_OF}).group(string) -> {_GROUP}", _undecided),
    (f"({_OF}).serviceAccount(string, string) -> {_OF}; ({_GROUP}).resource(string) -> {_RESOURCE}", _undecided),
    *((f"({_RESOURCE}).{step}(string) -> {_RESOURCE}", _undecided) for step in _STEPS),
    *((f"({each}).check(string) -> {_DECISION}", _undecided) for each in (_PATH, _RESOURCE)),
    *((f"({_DECISION}).{field}() -> bool", _undecided) for field in ("allowed", "errored")),
    *((f"({_DECISION}).{field}() -> string", _undecided) for field in ("reason", "error")),
)
