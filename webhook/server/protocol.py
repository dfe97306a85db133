"""Overrides of aiohttp's server: all of them are here, each with its reason.

| replaced                         | because aiohttp                                        |
| -------------------------------- | ------------------------------------------------------ |
| `Server.connection_lost`         | reports nothing; the number of connections is bounded  |
| `RequestHandler.connection_made` | lets a paused connection keep 256 KiB                  |
| `RequestHandler.data_received`   | has no deadline, no cost for tiny pieces, and reads    |
|                                  | a body before anybody has judged the head              |
| `RequestHandler.resume_reading`  | resumes after each piece: during a pause, and where    |
|                                  | nothing is paused, which parses an empty piece         |
| `RequestHandler.handle_error`    | answers with HTML, and names itself                    |
| `StreamResponse.prepare` and     | builds headers in a dictionary (the cost of a review), |
| `write_eof`                      | and sends head and body in two writes                  |

`tests/webhook/server/test_protocol.py` fails when aiohttp no longer calls these as expected.
"""

import asyncio
import logging
from typing import cast

from aiohttp import web

from webhook.server.activity import ANSWER, END, ENDED, NEXT, REQUEST, Activity
from webhook.server.answers import Refusal
from webhook.server.tls_records import CountedRecords

# The API server closes an idle connection after 90 s; the server must not be first.
KEEP_ALIVE_SECONDS = 120.0
# Time for which the rest of a refused body is read and discarded, so that the refusal arrives.
LINGER_SECONDS = 1.0
# Bytes that are parsed before the head is checked; the maximum length of a head.
FIRST_READ = 16 * 1024
# Bytes of one read; a smaller one is the end of a request, or a client that sends tiny pieces.
SMALL_READ = 4 * 1024
FREE_SMALL_READS = 8  # of one request
SHORTEST_PAUSE, LONGEST_PAUSE = 0.01, 1.0  # seconds
# Encrypted bytes buffered for a paused connection; the lower limit is above a TLS record.
MAX_WAITING, FEW_WAITING = 64 * 1024, 32 * 1024
# Bytes in one write, as in a TLS record: the TLS buffer of a connection stays as large as the
# largest write.
PIECE = 16 * 1024

log = logging.getLogger("gatewright.webhook")


class HttpServer(web.Server):
    """aiohttp's server that tracks lost connections; while it drains, each answer is the last."""

    is_draining = False

    def forget(self, connection: "HttpConnection") -> None:
        """Stop counting a connection that ended."""

    def connection_lost(
        self, handler: web.RequestHandler, exc: BaseException | None = None
    ) -> None:
        """Forget a connection."""
        super().connection_lost(handler, exc)
        self.forget(cast("HttpConnection", handler))


class HttpConnection(web.RequestHandler):
    """One client's connection: a slow client delays no other, and shutdown loses no request."""

    __slots__ = (
        "activity",
        "address",
        "is_pausing",
        "is_retired",
        "records",
        "server",
        "small_reads",
        "unread",
    )

    def __init__(self, server: HttpServer, address: str) -> None:
        loop = asyncio.get_running_loop()
        super().__init__(
            server,
            loop=loop,
            keepalive_timeout=KEEP_ALIVE_SECONDS,
            lingering_time=LINGER_SECONDS,
            access_log=None,  # type: ignore[arg-type]  # an access log line costs as much as a review
            auto_decompress=False,
        )
        self.server = server
        self.address = address
        self.activity = Activity(loop.time)
        self.small_reads = 0
        self.is_pausing = False
        self.is_retired = False
        """Whether the next answer is the last one."""
        self.unread: bytes | None = b""  # body bytes before the head is accepted; None afterwards

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Set up the connection after its TLS handshake."""
        super().connection_made(transport)
        self.records: CountedRecords = transport.get_extra_info("ssl_object")
        limits = {"high": MAX_WAITING, "low": FEW_WAITING}
        transport.set_read_buffer_limits(**limits)  # type: ignore[attr-defined]  # exists for TLS only

    def data_received(self, data: bytes) -> None:
        """Start a request's time limit at its first byte.

        Hold back a body until its head is accepted.

        A client that sends tiny pieces or tiny TLS records is read less and less often.
        """
        if self.activity.actor == ENDED:
            return
        if not data:  # aiohttp continues with its buffer
            super().data_received(data)
            return
        is_begun = not self.activity.on(REQUEST)
        if self.records.count_again():
            self._pause(max(self.small_reads, FREE_SMALL_READS) + 1)
        elif not is_begun:
            self.small_reads = 0
        elif len(data) < SMALL_READ:
            self._pause(self.small_reads + 1)
        if self.unread is not None and len(self.unread) + len(data) > FIRST_READ:
            first = b"" if self.unread else data[:FIRST_READ]
            self.unread += data[len(first) :]
            if self.transport is not None:
                self.transport.pause_reading()
            data = first
        super().data_received(data)

    def _pause(self, small_reads: int) -> None:
        """Pause reading, if there were more small reads than FREE_SMALL_READS."""
        self.small_reads = small_reads
        if self.small_reads > FREE_SMALL_READS and self.transport is not None:
            self.transport.pause_reading()
            self.is_pausing = True
            pause = SHORTEST_PAUSE * 2 ** min(self.small_reads - FREE_SMALL_READS, 10)
            self._loop.call_later(min(pause, LONGEST_PAUSE), self._end_pause)

    def accept(self) -> None:
        """Read the rest of a request whose head was accepted."""
        unread, self.unread = self.unread, None
        if unread:
            super().data_received(unread)
            self.resume_reading()

    def resume_reading(self, resume_parser: bool = True) -> None:
        """Resume reading if it is paused, but not before the end of a pause."""
        is_paused = self.transport is not None and not self.transport.is_reading()
        if is_paused and not self.is_pausing:
            super().resume_reading(resume_parser)

    def _end_pause(self) -> None:
        self.is_pausing = False
        self.resume_reading()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer invalid HTTP or an internal error with one line, and close the connection."""
        if status == 500:
            log.error("error while answering a request", exc_info=exc)
        if exc is not None:
            # breaks the cycle of exception and frames, so that no garbage collection is needed
            exc.__traceback__ = None
        text = "internal error" if status == 500 else "not an HTTP/1.1 request that can be answered"
        answer = HttpAnswer.refusing(Refusal(status, text))
        answer.force_close()
        return answer

    def abort(self) -> None:
        """Close the connection at once."""
        if self.transport is not None:
            self.transport.abort()


class HttpAnswer(web.StreamResponse):
    """An answer to one request, sent in one write unless it is large.

    It closes the connection if the client requests that, or has sent more than was read.
    """

    def __init__(self, body: bytes, head: bytes) -> None:
        """Take the body and a head from `head_of`."""
        self._answer = body
        self._head = head
        self._closes = False

    @classmethod
    def refusing(cls, refusal: Refusal) -> "HttpAnswer":
        """Return the answer for a refusal."""
        return cls(refusal.body, refusal.head)

    @property
    def keep_alive(self) -> bool:
        """Whether the connection stays open."""
        return not self._closes

    def force_close(self) -> None:
        """End the connection after this answer."""
        self._closes = True

    async def prepare(self, request: web.BaseRequest) -> None:
        """Send the answer. Raises ConnectionResetError if the client has disconnected."""
        connection, transport = cast("HttpConnection", request.protocol), request.transport
        if transport is None:
            raise ConnectionResetError("the client has closed the connection")
        connection.activity.on(ANSWER)
        is_whole = connection.unread is None and request.content.is_eof()
        is_last = connection.server.is_draining or connection.is_retired
        if is_last or not request.keep_alive or not is_whole:
            self._closes = True
        ending = b"Connection: close\r\n\r\n" if self._closes else b"\r\n"
        data = b"%b%d\r\n%b%b" % (self._head, len(self._answer), ending, self._answer)
        for start in range(0, len(data), PIECE):
            transport.write(data[start : start + PIECE])
            await request.writer.drain()
        self._answer = b""  # free the memory: the connection refers to its last answer
        connection.activity.on(END if self._closes else NEXT)
        connection.unread = b""  # data after the last answer is discarded

    async def write_eof(self, data: bytes = b"") -> None:
        """Do nothing: `prepare` has sent everything."""
