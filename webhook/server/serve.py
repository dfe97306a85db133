"""Serves reviews over TLS from start to drained end."""

import asyncio
import logging
import os
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from webhook.server.admission import AdmissionHandler, HasEngine, LookUp
from webhook.server.connections import (
    IDLE_SECONDS,
    MAX_CONNECTIONS,
    MAX_OF_ADDRESS,
    RECEIVE_BUFFER,
    REQUEST_SECONDS,
    Connections,
)
from webhook.server.content import POLL_SECONDS, poll
from webhook.server.metrics import Metrics
from webhook.server.tls import ServingCertificate

BACKLOG = 1024

log = logging.getLogger("gatewright.webhook")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfig:
    """Where and how to listen.

    At its end the server goes on for `linger_seconds`, until no endpoint leads to it any more, and then until all
    connections have ended, each with its next answer; after `grace_seconds` it closes those that are idle.
    """

    host: str | None = None
    port: int = 9443
    linger_seconds: float = 5.0
    grace_seconds: float = 30.0
    poll_seconds: float = POLL_SECONDS
    request_seconds: float = REQUEST_SECONDS
    most_connections: int = MAX_CONNECTIONS
    most_of_address: int = MAX_OF_ADDRESS
    idle_seconds: float = IDLE_SECONDS


@dataclass(frozen=True, slots=True)
class Listener:
    """An open listener: its port, what keeps it well, and how it ends."""

    config: ServerConfig
    port: int
    connections: Connections
    certificate: ServingCertificate

    async def upkeep(self) -> None:
        """Follow the certificate's files and cut slow clients, for ever."""
        async with asyncio.TaskGroup() as group:
            group.create_task(poll(self.certificate.refresh, self.config.poll_seconds))
            group.create_task(self.connections.sweep())

    async def drain(self) -> None:
        """End each connection with its next answer; return when none is left, or after the grace period."""
        self.connections.draining = True
        try:
            async with asyncio.timeout(self.config.grace_seconds):
                await asyncio.sleep(self.config.linger_seconds)
                await self.connections.none_open.wait()
        except TimeoutError:
            log.info("drained", extra={"fields": {"idle": len(self.connections.open)}})
        else:
            log.info("drained", extra={"fields": {"idle": 0}})


async def serve(
    stop: asyncio.Event,
    config: ServerConfig,
    policies: HasEngine,
    certificate: ServingCertificate,
    metrics: Metrics,
    look_ups: Mapping[str, LookUp],
    record_review: Callable[[bytes], None] | None = None,
) -> None:
    """Serve until `stop` is set, and then until the connections are drained."""
    handler = AdmissionHandler(policies, metrics, look_ups, record_review)
    async with listening(config, handler, certificate, metrics) as listener, asyncio.TaskGroup() as group:
        upkeep = group.create_task(listener.upkeep())
        log.info("listening", extra={"fields": {"host": config.host or "*", "port": listener.port}})
        await stop.wait()
        await listener.drain()
        upkeep.cancel()


@asynccontextmanager
async def listening(
    config: ServerConfig, handler: AdmissionHandler, certificate: ServingCertificate, metrics: Metrics
) -> AsyncIterator[Listener]:
    """Listen while the context lasts, with the pair that the files hold now, if there is one."""
    certificate.refresh()
    connections = Connections(
        handler.handle,
        metrics,
        context=certificate.context,
        most=config.most_connections,
        most_of_address=config.most_of_address,
        idle_seconds=config.idle_seconds,
        request_seconds=config.request_seconds,
    )
    try:
        sockets = await _listening_sockets(config.host, config.port)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno and error.errno > 0 else str(error.strerror or error)
        where = f"{config.host or '*'}:{config.port}"
        raise OSError(f"cannot listen on {where}: {reason.lower()}; choose another address with --listen") from error
    accepting = [asyncio.create_task(connections.accept(each)) for each in sockets]
    try:
        yield Listener(config, sockets[0].getsockname()[1], connections, certificate)
    finally:
        for task in accepting:
            task.cancel()
        await asyncio.gather(*accepting, return_exceptions=True)
        for each in sockets:
            each.close()
        await connections.close()


async def _listening_sockets(host: str | None, port: int) -> list[socket.socket]:
    """Listen at all addresses of a host, by default at all of the machine."""
    if host is None and socket.has_dualstack_ipv6():
        sockets = [socket.create_server(("", port), family=socket.AF_INET6, backlog=BACKLOG, dualstack_ipv6=True)]
    else:
        found = await asyncio.get_running_loop().getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        sockets = [socket.create_server(at[:2], family=family, backlog=BACKLOG) for family, _, _, _, at in found]
    for each in sockets:
        each.setblocking(False)
        each.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)  # accepted connections inherit it
    return sockets
