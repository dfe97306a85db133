"""The API server's errors as exceptions, by what the caller can do about them."""

import re
from collections.abc import Mapping
from typing import Any, ClassVar

MESSAGE_LIMIT = 2000
BY_WEBHOOK = 'admission webhook "'  # the beginning of a denial's message by an admission webhook


class ApiError(Exception):
    """A failed request; `code` is the HTTP status, or 0 without an answer.

    `message` is for people, and shortened; `whole_message` is as the API server wrote it.
    """

    retryable: ClassVar[bool] = True
    """Whether the same request may succeed later without a change of its object."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        details: Mapping[str, Any] | None = None,
        retry_after: float | None = None,
    ) -> None:
        self.code = code
        self.reason = reason
        self.message = message[:MESSAGE_LIMIT]
        self.whole_message = message
        self.details = dict(details or {})
        self.retry_after = retry_after
        super().__init__(f"{code} {reason}: {self.message}" if code else self.message)


class BadRequest(ApiError):  # noqa: N818
    """400, 405, 406, 413 or 415: the server does not accept the request."""

    retryable = False


class Unauthorized(ApiError):  # noqa: N818
    """401: no credentials, or invalid ones."""


class Forbidden(ApiError):  # noqa: N818
    """403: not allowed by RBAC, admission or quota.

    Retryable, since permissions and quotas can change without the object. Also a denial by a
    webhook with 400 (the API server's default) or 422, since policies can change too.
    """


class NamespaceTerminating(Forbidden):
    """403: nothing can be created in a namespace that is being deleted.

    Its objects are about to go, so client-go's controllers do not try again either.
    """


class NotFound(ApiError):  # noqa: N818
    """404: no such object, or no such resource."""


class AlreadyExists(ApiError):  # noqa: N818
    """409: the name is taken."""


class Conflict(ApiError):  # noqa: N818
    """409: another writer changed the object, or owns the field.

    Also 422 if the object has another uid.
    """


class Gone(ApiError):  # noqa: N818
    """410: the resource version or the continue token is too old."""

    @property
    def token(self) -> str:
        """A new continue token for the current state of the list.

        Empty if the list must be restarted.
        """
        return str(self.details.get("continue", ""))


class Invalid(ApiError):  # noqa: N818
    """422: the object breaks its schema or validation."""

    retryable = False


class TooManyRequests(ApiError):  # noqa: N818
    """429: too many requests; `retry_after` has the seconds to wait, if the server gave them."""


class ServerError(ApiError):
    """5xx, or a response that is not one of the Kubernetes API."""


class TooLargeError(ApiError):
    """The response is longer than the request allows; its connection was closed."""


class Unreachable(ApiError):  # noqa: N818
    """No answer: connection refused or closed, untrusted certificate, or time-out. `code` is 0."""

    def __init__(self, message: str) -> None:
        super().__init__(0, "Unreachable", message)


BY_CODE: Mapping[int, type[ApiError]] = {
    400: BadRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    405: BadRequest,
    406: BadRequest,
    409: Conflict,
    410: Gone,
    413: BadRequest,
    415: BadRequest,
    422: Invalid,
    429: TooManyRequests,
}

TERMINATING = "NamespaceTerminating"  # the cause that NamespaceLifecycle gives (apimachinery)

# a 404 without a Status
ABSENT = "the server has no such resource; is its CustomResourceDefinition installed?"


def error_for(code: int, status: object = None, retry_after: str | None = None) -> ApiError:
    """Return the error for an HTTP code, with its Status and Retry-After, if any."""
    fields: Mapping[str, Any] = (
        status if isinstance(status, Mapping) and status.get("kind") == "Status" else {}
    )
    reason = fields.get("reason") or ("NotFound" if code == 404 else "Unknown")
    details = dict(fields.get("details") or {})
    message = fields.get("message") or (ABSENT if code == 404 else "an answer without a Status")
    kind = ServerError if code >= 500 else BY_CODE.get(code, ApiError)
    if kind is Gone and (token := (fields.get("metadata") or {}).get("continue")):
        details["continue"] = token
    if kind in (BadRequest, Invalid):
        message = remove_quoted(message)
        causes = [
            cause | {"message": remove_quoted(cause.get("message", ""))}
            for cause in details.get("causes") or []
        ]
        details["causes"] = causes
        if any(cause.get("field") == "metadata.uid" for cause in causes):
            kind = Conflict  # a patch for an object that was deleted and recreated
        if message.startswith(BY_WEBHOOK):
            kind = Forbidden
    if kind is Conflict and reason == "AlreadyExists":
        kind = AlreadyExists
    causes = details.get("causes") or []
    if kind is Forbidden and any(cause.get("reason") == TERMINATING for cause in causes):
        kind = NamespaceTerminating
    # In seconds: the API server sends no HTTP dates.
    wait = str(retry_after or details.get("retryAfterSeconds") or "")
    return kind(code, reason, message, details, float(wait) if wait.isdecimal() else None)


def is_of_ended_namespace(error: BaseException) -> bool:
    """Return whether an error says that the namespace of a request is being deleted or gone."""
    is_gone = isinstance(error, NotFound) and error.details.get("kind") == "namespaces"
    return is_gone or isinstance(error, NamespaceTerminating)


def remove_quoted(message: str) -> str:
    """Return a message without a quoted object, which may contain secrets."""
    return re.sub(r"\{.*\}", "{…}", message, flags=re.DOTALL).partition('{"')[0]
