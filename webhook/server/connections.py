"""All connections of a server, limited in number per address and in total."""

import asyncio
import logging
import socket
import ssl
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Never, cast

from webhook.server.activity import CLIENT, IDLE, UNUSED
from webhook.server.metrics import WebhookMetrics
from webhook.server.protocol import HttpConnection, HttpServer
from webhook.server.shares import Shares

GOODBYE_SECONDS = 1.0
ACCEPT_AGAIN_SECONDS = 1.0
FULL_SECONDS = 60.0  # minimum time between two log lines about connections that cannot be accepted

log = logging.getLogger("gatewright.webhook")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfig:
    """The address and the limits of connections.

    At shutdown the server continues until no client has opened a connection for `linger_seconds`
    (clients open new ones until every node has removed its endpoint) and all connections have
    closed, each with its next answer. After `grace_seconds` it closes the idle ones.
    """

    host: str | None = None
    port: int = 9443
    linger_seconds: float = 5.0
    grace_seconds: float = 30.0
    poll_seconds: float = 5.0
    """Between two looks at the files of the certificate."""
    request_seconds: float = 10.0
    """Time limit of a TLS handshake, of receiving a request, and of sending an answer."""
    most_connections: int = 1000
    """About 45 kB each. An API server keeps 25 open, and opens more for further concurrent
    calls."""
    idle_seconds: float = 5.0
    """Above its address's share, a connection idle for this long is closed for a new one."""


class Connections(HttpServer):
    """All connections, limited in total, per address, and in time."""

    def __init__(
        self,
        handler: Any,
        config: ServerConfig,
        context: ssl.SSLContext,
        metrics: WebhookMetrics,
        listener: socket.socket,
    ) -> None:
        super().__init__(handler)
        self.config = config
        self.port = listener.getsockname()[1]
        self._context = context
        self._listener = listener
        self._metrics = metrics
        self._shares = Shares(config.most_connections)
        self._retirements = 0
        self._last_opened = 0.0  # the loop's time of the last connection, or of the drain's begin
        metrics.connections.set_function(self._shares.total)

    async def accept(self) -> Never:
        """Accept connections forever, one at a time, so that other tasks can run."""
        loop = asyncio.get_running_loop()
        logged = -FULL_SECONDS
        async with asyncio.TaskGroup() as handshakes:
            while True:
                try:
                    client, address = await loop.sock_accept(self._listener)
                except OSError as error:  # such as too many open files
                    if loop.time() >= logged + FULL_SECONDS:
                        log.warning("no connection can be accepted: %s", error.strerror)
                        logged = loop.time()
                    await asyncio.sleep(ACCEPT_AGAIN_SECONDS)
                    continue
                if self._has_room(address[0]):
                    self._last_opened = loop.time()
                    handshakes.create_task(
                        self._shake_hands(client, HttpConnection(self, address[0]))
                    )
                else:
                    client.close()

    def _has_room(self, address: str) -> bool:
        """Return whether one more connection may be opened.

        An address above its share loses a connection for it: the oldest unused one, else one that
        is idle.
        """
        if self._shares.has_room(address, 1):
            return True
        self._metrics.connections_cut.labels("too-many").inc()
        idle_since = asyncio.get_running_loop().time() - self.config.idle_seconds
        own = [each for each in self._open() if each.address == address]
        idle = [each for each in own if each.activity.is_idle(idle_since)]
        if idle:
            min(idle, key=lambda each: (each.activity.actor, each.activity.since)).abort()
        return bool(idle)

    async def _shake_hands(self, client: socket.socket, connection: HttpConnection) -> None:
        self._shares.count(connection.address, 1)
        retirements = self._retirements
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: connection,
                client,
                ssl=self._context,
                ssl_handshake_timeout=self.config.request_seconds,
                ssl_shutdown_timeout=GOODBYE_SECONDS,
            )
        except OSError:  # the TLS handshake failed, or the client left
            self.forget(connection)
        if self._retirements != retirements:  # it may have been verified before
            connection.abort()

    def retire(self) -> None:
        """Close all connections, those with a request after its answer.

        Their clients were verified by authorities that are no longer trusted.
        """
        self._retirements += 1
        for connection in self._open():
            connection.is_retired = True
            if connection.activity.actor in {IDLE, UNUSED}:
                connection.abort()

    def forget(self, connection: HttpConnection) -> None:
        """Stop counting a connection that ended."""
        self._shares.count(connection.address, -1)

    def _open(self) -> Iterator[HttpConnection]:
        """Yield the connections whose handshake is complete."""
        return cast("Iterator[HttpConnection]", iter(self.connections))

    def sweep(self) -> None:
        """Abort the connections of clients that are too slow."""
        began = asyncio.get_running_loop().time() - self.config.request_seconds
        for connection in self._open():
            if connection.activity.actor == CLIENT and connection.activity.since < began:
                self._metrics.connections_cut.labels("too-slow").inc()
                connection.abort()

    async def drain(self) -> None:
        """Close each connection with its next answer.

        Return when none is left and none was opened for the linger period, or after the grace
        period.
        """
        self.is_draining = True
        self._last_opened = asyncio.get_running_loop().time()
        with suppress(TimeoutError):
            async with asyncio.timeout(self.config.grace_seconds):
                while self._shares.total() or self._linger() > 0:
                    await asyncio.sleep(self._linger())
                    await self._shares.all_given_back()
        log.info("drained", extra={"fields": {"idle": self._shares.total()}})

    def _linger(self) -> float:
        """Return the rest of the linger period, in seconds."""
        elapsed = asyncio.get_running_loop().time() - self._last_opened
        return self.config.linger_seconds - elapsed

    async def close(self) -> None:
        """Close the remaining connections with a TLS shutdown."""
        await self.shutdown(GOODBYE_SECONDS)
        with suppress(TimeoutError):
            async with asyncio.timeout(GOODBYE_SECONDS):
                await self._shares.all_given_back()
