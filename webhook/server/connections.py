"""Connections: bounds on their number and on slow clients, and the end of each without a lost request."""

import asyncio
import logging
import socket
import ssl
from collections import Counter
from typing import Any, Never

from aiohttp import web

from webhook.server.answers import TEXT, Answer, head_of
from webhook.server.metrics import Metrics

KEEP_ALIVE_SECONDS = 120.0  # the API server closes an idle connection after 90 s; the server must not be first
REQUEST_SECONDS = 10.0  # for the TLS handshake, for a request from first to last byte, for reading an answer
LINGER_SECONDS = 1.0  # the rest of a refused body is read and dropped for so long, so that the refusal arrives
GOODBYE_SECONDS = 1.0
MAX_CONNECTIONS = 1000  # about 45 kB each
MAX_OF_ADDRESS = 400  # of them; an API server keeps 25, and opens one more for each call beyond
IDLE_SECONDS = 5.0  # a connection that has been idle for longer makes room for a new one
FIRST_READ = 16 * 1024  # bytes that are parsed before the head is judged; no head may be longer
SMALL_READ = 4 * 1024  # bytes of a request that came at once; less is a rest, or a client that sends tiny pieces
FREE_SMALL_READS = 8  # of one request
SHORTEST_PAUSE, LONGEST_PAUSE = 0.01, 1.0  # seconds
RECEIVE_BUFFER = 32 * 1024  # bytes of the kernel's for each connection: what one read may cost at most

log = logging.getLogger("gatewright.webhook")


class Connection(web.RequestHandler):
    """One client's connection. Whatever the client has to do next, it has to do by `due`."""

    __slots__ = (
        "address",
        "due",
        "has_more",
        "is_judging",
        "is_used",
        "limits",
        "since",
        "small_reads",
        "unread",
    )

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
        self.due: float | None = None
        self.is_judging = False
        self.is_used = False
        self.has_more = False
        self.address = address
        self.since = self._loop.time()
        self.small_reads = 0
        self.unread: bytes | None = b""  # None once the head of a request was accepted

    def data_received(self, data: bytes) -> None:
        """Start the clock of a request at its first byte; read a client that sends tiny pieces ever less often.

        What has come meanwhile is read at once, so a client that has more to send is not slowed down.
        """
        if self.is_judging:
            self.has_more = True
        elif self.due is None:
            self.due = self._loop.time() + self.limits.request_seconds
            self.small_reads = 0
        elif len(data) < SMALL_READ and self.transport is not None:
            self.small_reads += 1
            if self.small_reads > FREE_SMALL_READS:
                self.transport.pause_reading()
                pause = SHORTEST_PAUSE * 2 ** min(self.small_reads - FREE_SMALL_READS, 10)
                self._loop.call_later(min(pause, LONGEST_PAUSE), self._read_on)
        if self.unread is not None and len(self.unread) + len(data) > FIRST_READ:
            first = b"" if self.unread else data[:FIRST_READ]
            self.unread += data[len(first) :]
            if self.transport is not None:
                self.transport.pause_reading()
            data = first
        super().data_received(data)

    def _read_on(self) -> None:
        if self.transport is not None:
            self.transport.resume_reading()

    def request_accepted(self) -> None:
        """Read the rest of a request whose head is judged."""
        unread, self.unread = self.unread, None
        if unread:
            super().data_received(unread)
            self._read_on()

    def request_received(self) -> None:
        """Stop the clock: all of the request is here, and the time until the answer is the server's."""
        self.due = None
        self.is_judging = True

    def answering(self, answer: Answer) -> None:
        """Start the clock of the client, which has to read the answer; while draining it is the last one."""
        self.due = self._loop.time() + self.limits.request_seconds
        if self.limits.draining:
            answer.force_close()

    def answered(self) -> None:
        """Wait for the next request, which may have begun."""
        self.is_judging, self.is_used = False, True
        self.unread = b""
        self.since = self._loop.time()
        self.limits.open[self] = self.limits.open.pop(self)
        if not self.has_more:
            self.due = None
        self.has_more = False

    def handle_error(
        self, request: web.BaseRequest, status: int = 500, exc: BaseException | None = None, message: str | None = None
    ) -> web.StreamResponse:
        """Answer a request that is not HTTP, or that met an internal error, in one line and close the connection."""
        if status == 500:
            log.error("error while answering a request", exc_info=exc)
        text = b"internal error\n" if status == 500 else b"not an HTTP/1.1 request that can be answered\n"
        return Answer(text, head_of(status, TEXT), closes=True)

    def abort(self) -> None:
        """Close the connection at once."""
        if self.transport is not None:
            self.transport.abort()


class Connections(web.Server):
    """All open connections: at most so many, from one address too, and none waited for longer than agreed."""

    def __init__(
        self,
        handler: Any,
        metrics: Metrics,
        *,
        context: ssl.SSLContext,
        most: int = MAX_CONNECTIONS,
        most_of_address: int = MAX_OF_ADDRESS,
        idle_seconds: float = IDLE_SECONDS,
        request_seconds: float = REQUEST_SECONDS,
    ) -> None:
        super().__init__(handler)
        self.context = context
        self.idle_seconds = idle_seconds
        self.handshakes: set[asyncio.Task[None]] = set()
        self.metrics = metrics
        self.most = most
        self.most_of_address = most_of_address
        self.request_seconds = request_seconds
        self.draining = False
        self.open: dict[Connection, asyncio.Transport] = {}  # that was answered, or opened, longest ago comes first
        self.none_open = asyncio.Event()
        self.none_open.set()
        self._of_address: Counter[str] = Counter()

    async def accept(self, listening: socket.socket) -> Never:
        """Accept connections, for ever: one at a time, so that many new ones leave time for the others."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                client, address = await loop.sock_accept(listening)
            except OSError as error:  # such as no more file descriptors
                log.warning("no connection can be accepted: %s", error.strerror)
                await asyncio.sleep(1)
                continue
            connection = self._admitted(address[0])
            if connection is None:
                client.close()
            else:
                task = loop.create_task(self._shake_hands(client, connection))
                self.handshakes.add(task)
                task.add_done_callback(self.handshakes.discard)

    async def _shake_hands(self, client: socket.socket, connection: Connection) -> None:
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: connection,
                client,
                ssl=self.context,
                ssl_handshake_timeout=self.request_seconds,
                ssl_shutdown_timeout=GOODBYE_SECONDS,
            )
        except OSError:  # it sent no TLS that fits, or left
            self._forget(connection)

    def _admitted(self, address: str) -> Connection | None:
        """Return a new connection. At the limits an idle one ends for it; None where none is idle."""
        of_address = self._of_address[address] >= self.most_of_address
        if of_address or self._of_address.total() >= self.most:
            idle_since = asyncio.get_running_loop().time() - self.idle_seconds
            idle = (
                each
                for each in self.open
                if each.since <= idle_since and not each.is_judging and (each.address == address or not of_address)
            )
            longest = min(idle, key=lambda each: each.is_used, default=None)  # rather one that was never used
            self.metrics.connections_cut.labels("too-many").inc()
            if longest is None:
                return None
            longest.abort()
        self._of_address[address] += 1
        return Connection(self, address)

    def _forget(self, connection: Connection) -> None:
        """Count a connection no more."""
        self._of_address[connection.address] -= 1
        if not self._of_address[connection.address]:
            del self._of_address[connection.address]

    def connection_made(self, handler: web.RequestHandler, transport: asyncio.Transport) -> None:
        """Know a connection whose handshake is complete."""
        assert isinstance(handler, Connection)
        super().connection_made(handler, transport)
        self.open[handler] = transport
        self.none_open.clear()
        self.metrics.connections.set(len(self.open))

    def connection_lost(self, handler: web.RequestHandler, exc: BaseException | None = None) -> None:
        """Forget a connection."""
        assert isinstance(handler, Connection)
        super().connection_lost(handler, exc)
        if self.open.pop(handler, None) is not None:
            self._forget(handler)
        self.metrics.connections.set(len(self.open))
        if not self.open:
            self.none_open.set()

    async def close(self) -> None:
        """End what is still open: politely, and after a moment without further ado."""
        for handshake in self.handshakes:
            handshake.cancel()
        await asyncio.gather(*self.handshakes, return_exceptions=True)
        await self.shutdown(GOODBYE_SECONDS)
        try:
            async with asyncio.timeout(GOODBYE_SECONDS):
                await self.none_open.wait()
        except TimeoutError:
            for transport in self.open.values():
                transport.abort()
            await self.none_open.wait()

    async def sweep(self) -> Never:
        """Cut the connections of clients that are too slow, for ever."""
        while True:
            await asyncio.sleep(self.request_seconds / 10)
            now = asyncio.get_running_loop().time()
            for connection in [each for each in self.open if each.due is not None and each.due < now]:
                self.metrics.connections_cut.labels("too-slow").inc()
                connection.abort()
