"""The Status objects of API server errors, with its wording where that matters."""

from kube.resource import JsonObject, Resource

REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    409: "Conflict",
    410: "Expired",
    415: "UnsupportedMediaType",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    501: "NotImplemented",
    503: "ServiceUnavailable",
    504: "Timeout",
}


class StatusError(Exception):
    """An error response: a Status instead of an object."""

    def __init__(
        self,
        code: int,
        message: str,
        *,
        reason: str | None = None,
        details: JsonObject | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.status: JsonObject = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": message,
            "reason": reason or REASONS.get(code, "Unknown"),
            "details": details or {},
            "code": code,
        }


def not_found(plural: str, name: str) -> StatusError:
    """Return the error for a missing object."""
    return StatusError(404, f'{plural} "{name}" not found', details={"name": name, "kind": plural})


def conflict(plural: str, name: str, why: str) -> StatusError:
    """Return the error for an object that a precondition of the request does not fit."""
    message = f'Operation cannot be fulfilled on {plural} "{name}": {why}'
    return StatusError(409, message, details={"name": name, "kind": plural})


def terminating(plural: str, name: str, namespace: str) -> StatusError:
    """Return the error for a new object in a namespace that is being deleted."""
    message = (
        f'{plural} "{name}" is forbidden: unable to create new content in namespace {namespace} '
        "because it is being terminated"
    )
    cause = {
        "reason": "NamespaceTerminating",
        "message": f"namespace {namespace} is being terminated",
        "field": "metadata.namespace",
    }
    details = {"name": name, "kind": plural, "causes": [cause]}
    return StatusError(403, message, details=details)


def ending(kind: Resource, name: str) -> StatusError:
    """Return the error for a new object of a kind whose CRD is being deleted."""
    message = (
        f'{kind.plural}.{kind.group} "{name}" is forbidden: create not allowed while custom '
        "resource definition is terminating"
    )
    details = {"name": name, "group": kind.group, "kind": kind.plural}
    return StatusError(403, message, details=details)


def expired_token(token: str) -> StatusError:
    """Return the error for an expired continue token; `token` continues the list inconsistently."""
    refusal = StatusError(
        410, "The provided continue parameter is too old to display a consistent list result"
    )
    refusal.status["metadata"] = {"continue": token}
    return refusal


def invalid(kind: str, name: str, *causes: tuple[str, str]) -> StatusError:
    """Return the error for an invalid object; each fault is (field, message)."""
    text = "; ".join(f"{field}: {message}" for field, message in causes)
    listed = [
        {"reason": "FieldValueInvalid", "field": field, "message": message}
        for field, message in causes
    ]
    return StatusError(
        422,
        f'{kind} "{name}" is invalid: {text}',
        details={"name": name, "kind": kind, "causes": listed},
    )
