"""HTTP answers. The head and the body of an answer are sent in one write unless they are large."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, cast

from aiohttp import web

if TYPE_CHECKING:
    from webhook.server.connection import Connection

NO_HEADERS: Mapping[str, str] = {}
PIECE = (
    16 * 1024
)  # bytes in one write: the TLS buffer of a connection stays as large as the largest; a TLS record
JSON = "application/json"
TEXT = "text/plain; charset=utf-8"


class Answer(web.StreamResponse):
    """An answer to one request.

    It takes the place of aiohttp's Response, whose dictionary of headers costs as much as a review.
    """

    def __init__(self, body: bytes, head: bytes) -> None:
        """Take the body and a head from `head_of`."""
        self._answer = body
        self._head = head
        self._closes = False

    @property
    def keep_alive(self) -> bool:
        """Whether the connection stays open."""
        return not self._closes

    def force_close(self) -> None:
        """End the connection after this answer."""
        self._closes = True

    async def prepare(self, request: web.BaseRequest) -> None:
        """Send the answer. ConnectionResetError where the client has gone."""
        connection, transport = cast("Connection", request.protocol), request.transport
        if transport is None:
            raise ConnectionResetError("the client has closed the connection")
        self._closes = connection.answers_last(request) or self._closes
        ending = b"Connection: close\r\n\r\n" if self._closes else b"\r\n"
        data = b"%b%d\r\n%b%b" % (self._head, len(self._answer), ending, self._answer)
        for start in range(0, len(data), PIECE):
            transport.write(data[start : start + PIECE])
            await request.writer.drain()
        self._answer = b""  # the connection keeps its last answer until the next one
        connection.answered(is_last=self._closes)

    async def write_eof(self, data: bytes = b"") -> None:
        """Do nothing: `prepare` has sent all of it."""


class Refusal(Exception):  # noqa: N818
    """A request that gets no review: the HTTP status and the reason."""

    def __init__(self, status: int, text: str, headers: Mapping[str, str] = NO_HEADERS) -> None:
        super().__init__(text)
        self.status = status
        self.headers = headers

    def answer(self) -> Answer:
        """Return the refusal as one line of text.

        The connection ends unless the whole request was read.
        """
        return Answer(f"{self}\n".encode(), head_of(self.status, TEXT, self.headers))


def head_of(status: int, content_type: str, headers: Mapping[str, str] = NO_HEADERS) -> bytes:
    """Return the head of an answer up to the number of the body's bytes."""
    fields = {"Server": "gatewright", "Content-Type": content_type, **headers, "Content-Length": ""}
    lines = "\r\n".join(f"{name}: {value}" for name, value in fields.items())
    return f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n{lines}".encode()


REVIEWED = head_of(200, JSON)
