"""HTTP answers as bytes, and refusals: error responses to requests that are not judged."""

from collections.abc import Mapping
from http import HTTPStatus

NO_HEADERS: Mapping[str, str] = {}
JSON = "application/json"
TEXT = "text/plain; charset=utf-8"


class Refusal(Exception):  # noqa: N818
    """An error response to a request that is not judged: HTTP status and reason."""

    def __init__(self, status: int, text: str, headers: Mapping[str, str] = NO_HEADERS) -> None:
        super().__init__(text)
        self.status = status
        self._headers = headers

    @property
    def body(self) -> bytes:
        """The reason, as text."""
        return f"{self}\n".encode()

    @property
    def head(self) -> bytes:
        """The head of the answer, as from `head_of`."""
        return head_of(self.status, TEXT, self._headers)


def head_of(status: int, content_type: str, headers: Mapping[str, str] = NO_HEADERS) -> bytes:
    """Return the head of an answer up to the value of Content-Length."""
    fields = {"Server": "gatewright", "Content-Type": content_type, **headers, "Content-Length": ""}
    lines = "\r\n".join(f"{name}: {value}" for name, value in fields.items())
    return f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n{lines}".encode()


REVIEWED = head_of(200, JSON)
