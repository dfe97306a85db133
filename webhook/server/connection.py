"""Connection: one client's, which it cannot hold by being slow, and which ends without losing a request."""

import asyncio
import logging
from typing import TYPE_CHECKING

from aiohttp import web

from webhook.server.answers import Refusal

if TYPE_CHECKING:
    from webhook.server.connections import Connections

KEEP_ALIVE_SECONDS = (
    120.0  # the API server closes an idle connection after 90 s; the server must not be first
)
LINGER_SECONDS = (
    1.0  # the rest of a refused body is read and dropped for so long, so that the refusal arrives
)
FIRST_READ = 16 * 1024  # bytes that are parsed before the head is judged; no head may be longer
SMALL_READ = (
    4 * 1024
)  # bytes of a request that came at once; less is a rest, or a client that sends tiny pieces
FREE_SMALL_READS = 8  # of one request
SHORTEST_PAUSE, LONGEST_PAUSE = 0.01, 1.0  # seconds

# Who acts, in the order in which connections make room for new ones: neither side before the first
# request; the client, which sends a request or reads an answer; neither side between two requests,
# or after the last one; the server.
UNUSED, CLIENT, IDLE, ENDED, SERVER = range(5)

log = logging.getLogger("gatewright.webhook")


class Connection(web.RequestHandler):
    """One client's connection: who `acts` on it, and `since` when."""

    __slots__ = ("acts", "address", "is_pausing", "limits", "since", "small_reads", "unread")

    def __init__(self, limits: "Connections", address: str) -> None:
        super().__init__(
            limits,
            loop=asyncio.get_running_loop(),
            keepalive_timeout=KEEP_ALIVE_SECONDS,
            lingering_time=LINGER_SECONDS,
            access_log=None,  # type: ignore[arg-type]  # a log line costs as much as a review
            auto_decompress=False,
        )
        self.limits = limits
        self.address = address
        self.small_reads = 0
        self.is_pausing = False
        self.unread: bytes | None = b""  # None once the head of a request was accepted
        self.let_act(UNUSED)

    def data_received(self, data: bytes) -> None:
        """Start the clock of a request at its first byte.

        Read a client that sends tiny pieces ever less often.

        What has come meanwhile is read at once, so a client that has more to send is not slowed
        down.
        """
        if self.acts == ENDED:
            return
        if self.acts in (UNUSED, IDLE):
            self.let_act(CLIENT)
            self.small_reads = 0
        elif (
            0 < len(data) < SMALL_READ and self.transport is not None
        ):  # aiohttp reads on with no data
            self.small_reads += 1
            if self.small_reads > FREE_SMALL_READS:
                self.transport.pause_reading()
                self.is_pausing = True
                pause = SHORTEST_PAUSE * 2 ** min(self.small_reads - FREE_SMALL_READS, 10)
                self._loop.call_later(min(pause, LONGEST_PAUSE), self._end_pause)
        if self.unread is not None and len(self.unread) + len(data) > FIRST_READ:
            first = b"" if self.unread else data[:FIRST_READ]
            self.unread += data[len(first) :]
            if self.transport is not None:
                self.transport.pause_reading()
            data = first
        super().data_received(data)

    def accept(self) -> None:
        """Read the rest of a request whose head is judged."""
        unread, self.unread = self.unread, None
        if unread:
            super().data_received(unread)
            self.resume_reading()

    def resume_reading(self, resume_parser: bool = True) -> None:
        """Read on, but not before the end of a pause: aiohttp calls this after each piece that was read."""
        if not self.is_pausing and self.transport is not None:
            super().resume_reading(resume_parser)

    def _end_pause(self) -> None:
        self.is_pausing = False
        self.resume_reading()

    def let_act(self, who: int) -> None:
        """Start the clock of the client, or stop it."""
        self.acts, self.since = who, self._loop.time()

    def answers_last(self, request: web.BaseRequest) -> bool:
        """Let the client read the answer to a request, and return whether it is the last one of the connection."""
        self.let_act(CLIENT)
        is_whole = self.unread is None and request.content.is_eof()
        return self.limits.is_draining or not request.keep_alive or not is_whole

    def answered(self, *, is_last: bool) -> None:
        """Wait for the next request, or for the end; what is sent until then is dropped."""
        self.let_act(ENDED if is_last else IDLE)
        self.unread = b""

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer a request that is not HTTP, or that met an internal error, in one line and close the connection."""
        if status == 500:
            log.error("error while answering a request", exc_info=exc)
        if exc is not None:
            # its frames refer to the exception: the connection would wait for the collector
            exc.__traceback__ = None
        text = "internal error" if status == 500 else "not an HTTP/1.1 request that can be answered"
        answer = Refusal(status, text).answer()
        answer.force_close()
        return answer

    def abort(self) -> None:
        """Close the connection at once."""
        if self.transport is not None:
            self.transport.abort()
