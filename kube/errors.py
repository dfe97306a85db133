"""The API server's errors as exceptions, by what the caller can do about them."""

import re
from collections.abc import Mapping
from typing import Any, ClassVar

MESSAGE_LIMIT = 2000
BY_WEBHOOK = 'admission webhook "'  # how the message of a denial by an admission webhook begins


class ApiError(Exception):
    """A request that failed; `code` is the HTTP status, or 0 where there was no answer at all."""

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
        self.details = dict(details or {})
        self.retry_after = retry_after
        super().__init__(f"{code} {reason}: {self.message}" if code else self.message)


class BadRequest(ApiError):  # noqa: N818
    """400, 405, 406, 413 or 415: the server does not take such a request."""

    retryable = False


class Unauthorized(ApiError):  # noqa: N818
    """401: no credentials, or none that count."""


class Forbidden(ApiError):  # noqa: N818
    """403: not allowed by RBAC, admission or quota.

    Retryable: rights and quotas change without the object.

    Also a denial by a webhook with 400 (the default of the API server) or 422: policies change
    without the object.
    """


class NotFound(ApiError):  # noqa: N818
    """404: no such object, or no such resource."""


class AlreadyExists(ApiError):  # noqa: N818
    """409: the name is taken."""


class Conflict(ApiError):  # noqa: N818
    """409: another writer changed the object, or owns the field.

    Also (422) where the object has another uid.
    """


class Gone(ApiError):  # noqa: N818
    """410: the resource version or the continue token is too old."""

    @property
    def token(self) -> str:
        """What continues a list whose token is too old, with what there is now.

        Empty where it must begin again.
        """
        return str(self.details.get("continue", ""))


class Invalid(ApiError):  # noqa: N818
    """422: the object breaks its schema or validation."""

    retryable = False


class TooManyRequests(ApiError):  # noqa: N818
    """429: too many requests; `retry_after` has the seconds to wait, if the server gave them."""


class ServerError(ApiError):
    """5xx, or a response that is not one of the Kubernetes API."""


class Unreachable(ApiError):  # noqa: N818
    """No answer: refused, cut, not trusted, or not in time. `code` is 0."""

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
        message = unquoted(message)
        causes = [
            cause | {"message": unquoted(cause.get("message", ""))}
            for cause in details.get("causes") or []
        ]
        details["causes"] = causes
        if any(cause.get("field") == "metadata.uid" for cause in causes):
            kind = Conflict  # a patch for an object that was deleted and made again
        if message.startswith(BY_WEBHOOK):
            kind = Forbidden
    if kind is Conflict and reason == "AlreadyExists":
        kind = AlreadyExists
    # In seconds: the API server sends no dates.
    wait = str(retry_after or details.get("retryAfterSeconds") or "")
    return kind(code, reason, message, details, float(wait) if wait.isdecimal() else None)


def unquoted(message: str) -> str:
    """Return a message without the object that it quotes, which may contain secrets."""
    return re.sub(r"\{.*\}", "{…}", message, flags=re.DOTALL).partition('{"')[0]
