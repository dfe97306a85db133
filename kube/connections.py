"""The connections of one client: kept alive between requests, not too many of them, and all closed with it."""

import asyncio

from kube.coalescing import Coalescing
from kube.connection import Answer, Connection, Gate
from kube.dial import Dialer
from kube.endpoint import Endpoint
from kube.stream import Stream

CONNECTIONS = 100  # so many requests at a time; streams have connections of their own beside them
IDLE_SECONDS = 60.0  # less than the API server's 90, so that it is we who close


class Connections:
    """Lent to one request at a time; what was used last is used next, so that the others grow old."""

    def __init__(self, endpoint: Endpoint, *, coalesces: bool = False) -> None:
        """Belong to the event loop that runs."""
        self._loop = asyncio.get_running_loop()
        self._dialer = Dialer(endpoint)
        self._coalescing = Coalescing(is_on=coalesces)
        self._room = asyncio.Event()  # not a Semaphore: it is almost never short, and costs 5 % of a request
        self._open: set[Connection] = set()
        self._idle: list[Connection] = []
        self._timer: asyncio.TimerHandle | None = None
        self._is_closed = False

    async def close(self) -> None:
        """Close all, and return when no socket is open any more."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        for connection in self._open:
            connection.abort()
        if self._open:
            await asyncio.wait([connection.closed for connection in self._open])

    async def exchange(self, request: bytes, deadline: float, gate: Gate | None = None, *, again: bool) -> Answer:
        """Send a request and return the whole answer.

        A server may close an idle connection while a request is on its way. If no byte of an answer came, and if the
        request may be sent `again`, it is, once, on a new connection.
        """
        while self._coalescing.under_way >= CONNECTIONS:
            self._room.clear()
            async with asyncio.timeout_at(deadline):
                await self._room.wait()
        self._coalescing.under_way += 1
        connection = self._take_idle()
        again = again and connection is not None
        try:
            while True:
                if connection is None:
                    connection = await self._connect(deadline)
                try:
                    found = await connection.send(request, deadline, gate)
                finally:
                    self._take_back(connection)
                if not isinstance(found, OSError):
                    return found
                if not again or connection.heard or not isinstance(found, ConnectionError):
                    raise found
                connection, again = None, False
        finally:
            self._coalescing.under_way -= 1
            self._room.set()

    async def open(self, request: bytes, deadline: float, stream: Stream) -> tuple[Answer, Connection]:
        """Send a request whose answer is for a stream, on a connection of its own, which the caller aborts."""
        connection = await self._connect(deadline)
        try:
            found = await connection.send(request, deadline, stream=stream)
        except BaseException:
            connection.abort()
            raise
        if isinstance(found, OSError):
            raise found
        return found, connection

    async def _connect(self, deadline: float) -> Connection:
        connection = await self._dialer.connect(lambda: Connection(self._open.discard, self._coalescing), deadline)
        if not connection.closed.done():
            self._open.add(connection)
        if self._is_closed:
            connection.abort()
        return connection

    def _take_idle(self) -> Connection | None:
        while self._idle:
            connection = self._idle.pop()
            if connection.is_free:
                return connection
        return None

    def _take_back(self, connection: Connection) -> None:
        """Keep a connection for the next request, or close it if more of an answer may come."""
        if self._is_closed or not connection.is_free:
            connection.abort()
            return
        connection.idle_since = self._loop.time()
        self._idle.append(connection)
        if self._timer is None:
            self._timer = self._loop.call_at(connection.idle_since + IDLE_SECONDS, self._close_old)

    def _close_old(self) -> None:
        """Close what was idle for long, and look again when the next will have been."""
        now, self._timer = self._loop.time(), None
        while self._idle and self._idle[0].idle_since + IDLE_SECONDS <= now:
            self._idle.pop(0).abort()
        if self._idle:
            self._timer = self._loop.call_at(self._idle[0].idle_since + IDLE_SECONDS, self._close_old)
