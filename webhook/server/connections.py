"""Connections: all of a server, bounded in number for each address and together."""

import asyncio
import logging
import socket
import ssl
from collections import Counter
from typing import Any, Never

from aiohttp import web

from webhook.server.connection import Connection
from webhook.server.metrics import Metrics

REQUEST_SECONDS = 10.0  # for the TLS handshake, for a request from first to last byte, for reading an answer
GOODBYE_SECONDS = 1.0
MAX_CONNECTIONS = 1000  # about 45 kB each
MAX_OF_ADDRESS = 400  # of them; an API server keeps 25, and opens one more for each call beyond
IDLE_SECONDS = 5.0  # a connection that has been idle for longer makes room for a new one
RECEIVE_BUFFER = 64 * 1024  # bytes of the kernel's for each connection: what one read may cost at most

log = logging.getLogger("gatewright.webhook")


class Connections(web.Server):
    """All open connections, limited in number, per address, and in waiting time."""

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
