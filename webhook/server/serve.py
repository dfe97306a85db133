"""Serves reviews over TLS from start to drained end."""

import asyncio
import logging
import os
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager

from webhook.server.admission import AdmissionHandler, HasEngine, LookUp
from webhook.server.connections import Connections, ServerConfig
from webhook.server.content import poll
from webhook.server.metrics import Metrics
from webhook.server.tls import ServingCertificate

BACKLOG = 1024
RECEIVE_BUFFER = 64 * 1024  # bytes of the kernel's for each connection: what one read may cost at most

log = logging.getLogger("gatewright.webhook")


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
    async with listening(config, handler, certificate, metrics) as connections:
        log.info("listening", extra={"fields": {"host": config.host or "*", "port": connections.port}})
        await stop.wait()
        await connections.drain()


@asynccontextmanager
async def listening(
    config: ServerConfig, handler: AdmissionHandler, certificate: ServingCertificate, metrics: Metrics
) -> AsyncIterator[Connections]:
    """Listen while the context lasts, with the pair that the certificate's files hold."""
    certificate.refresh()
    with _listener(config.host, config.port) as listener:
        connections = Connections(handler.handle, config, certificate.context, metrics, listener)
        async with asyncio.TaskGroup() as group:
            running = [
                group.create_task(connections.accept()),
                group.create_task(connections.sweep()),
                group.create_task(poll(certificate.refresh, config.poll_seconds)),
            ]
            try:
                yield connections
            finally:
                for task in running:
                    task.cancel()
                await connections.close()


def _listener(host: str | None, port: int) -> socket.socket:
    """Listen at an address, by default at all of the machine. OSError where that is not possible."""
    is_dual = host is None and socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if is_dual or ":" in (host or "") else socket.AF_INET
    try:
        listener = socket.create_server((host or "", port), family=family, backlog=BACKLOG, dualstack_ipv6=is_dual)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno and error.errno > 0 else str(error.strerror or error)
        where = f"{host or '*'}:{port}"
        raise OSError(f"cannot listen on {where}: {reason.lower()}; choose another address with --listen") from error
    listener.setblocking(False)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)  # accepted connections inherit it
    return listener
