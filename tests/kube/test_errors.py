"""Error responses of the API server become typed errors."""

from typing import Any

import pytest

from kube import errors
from kube.errors import error_for


def status(reason: str = "", message: str = "why", **details: Any) -> dict[str, Any]:
    """Return a Status."""
    return {"kind": "Status", "reason": reason, "message": message, "details": details}


@pytest.mark.parametrize(
    ("code", "reason", "kind", "retryable"),
    [
        (400, "BadRequest", errors.BadRequest, False),
        (401, "Unauthorized", errors.Unauthorized, True),
        (403, "Forbidden", errors.Forbidden, True),
        (404, "NotFound", errors.NotFound, True),
        (405, "MethodNotAllowed", errors.BadRequest, False),
        (409, "AlreadyExists", errors.AlreadyExists, True),
        (409, "Conflict", errors.Conflict, True),
        (410, "Expired", errors.Gone, True),
        (413, "RequestEntityTooLarge", errors.BadRequest, False),
        (415, "UnsupportedMediaType", errors.BadRequest, False),
        (418, "", errors.ApiError, True),
        (422, "Invalid", errors.Invalid, False),
        (429, "TooManyRequests", errors.TooManyRequests, True),
        (500, "InternalError", errors.ServerError, True),
        (504, "Timeout", errors.ServerError, True),
    ],
)
def test_each_code_has_its_type(
    code: int, reason: str, kind: type[errors.ApiError], retryable: bool
) -> None:
    """The type of an error tells the fault and whether to retry."""
    error = error_for(code, status(reason))
    assert type(error) is kind
    assert (error.code, error.retryable, error.message) == (code, retryable, "why")


@pytest.mark.parametrize(
    "answer", [None, {}, {"kind": "Pod"}, {"kind": "Status"}, {"kind": "Status", "details": None}]
)
def test_an_answer_need_not_be_a_status(answer: object) -> None:
    """A proxy's page, or half a Status, still gives an error with the code."""
    assert str(error_for(502, answer)) == "502 Unknown: an answer without a Status"


def test_a_resource_that_is_not_served_is_named_as_such():
    """An API server without the CRD answers 404 in plain text; the error names the missing resource."""
    error = error_for(404, None)
    assert isinstance(error, errors.NotFound)
    assert (
        str(error)
        == "404 NotFound: the server has no such resource; is its CustomResourceDefinition installed?"
    )


@pytest.mark.parametrize("code", [400, 403, 422])
def test_a_denial_by_a_webhook_is_not_permanent(code: int) -> None:
    """A denial is not permanent, whatever code the webhook, or the API server for it, returns."""
    error = error_for(
        code, status("", 'admission webhook "policy.example.com" denied the request: not today')
    )
    assert (type(error), error.code, error.retryable) == (errors.Forbidden, code, True)


def test_another_uid_is_a_conflict() -> None:
    """The server calls a patch with another uid invalid; it is treated as a conflict."""
    answer = status("Invalid", causes=[{"field": "metadata.uid", "message": "field is immutable"}])
    assert isinstance(error_for(422, answer), errors.Conflict)


def test_errors_do_not_quote_sent_objects() -> None:
    """The server's texts quote whole objects; our messages and causes do not."""
    quoted = 'patch: Invalid value: "{\\"data\\":{\\"password\\":\\"hunter2\\"}}": cannot be read ({"data":{"pass ...)'
    error = error_for(
        422, status("Invalid", quoted, causes=[{"field": "patch", "message": quoted}])
    )
    assert "hunter2" not in f"{error}{error.details}"
    assert error.message == 'patch: Invalid value: "{…}": cannot be read ('


def test_a_long_message_is_cut() -> None:
    """Long messages of the server are truncated."""
    assert len(error_for(500, status("", "x" * 100_000)).message) == errors.MESSAGE_LIMIT


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("0", 0),
        ("1", 1),
        ("86400", 86400),
        (None, None),
        ("soon", None),
        ("", None),
        ("-1", None),
        ("1.5", None),
    ],
)
def test_retry_after(header: str | None, expected: float | None) -> None:
    """Seconds are parsed; an invalid value counts as unset."""
    assert error_for(429, None, header).retry_after == expected


def test_a_status_can_have_the_time_of_a_retry() -> None:
    """Without the header, retryAfterSeconds of the details counts."""
    assert error_for(504, status("Timeout", retryAfterSeconds=3)).retry_after == 3


def test_no_answer_has_no_code() -> None:
    """An unreachable server is an ApiError with the code 0."""
    error = errors.Unreachable("cannot reach it")
    assert (error.code, error.retryable, str(error)) == (0, True, "cannot reach it")
