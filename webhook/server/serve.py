"""Listens for reviews over TLS."""

import asyncio
import logging
import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Never

from webhook.server.admission import AdmissionHandler
from webhook.server.connections import Connections, ServerConfig
from webhook.server.metrics import WebhookMetrics
from webhook.server.tls import ServingCertificate

BACKLOG = 1024
# Bytes of the kernel's receive buffer of a connection: reading them as one-byte TLS records takes 3
# ms.
RECEIVE_BUFFER = 32 * 1024

log = logging.getLogger("gatewright.webhook")


@asynccontextmanager
async def listening(
    config: ServerConfig,
    handler: AdmissionHandler,
    certificate: ServingCertificate,
    metrics: WebhookMetrics,
) -> AsyncIterator[Connections]:
    """Listen until the context exits, with the given serving certificate."""
    certificate.refresh()
    with _listener(config.host, config.port) as listener:
        connections = Connections(handler.handle, config, certificate.context, metrics, listener)
        certificate.on_new_authorities = connections.retire
        log.info(
            "listening", extra={"fields": {"host": config.host or "*", "port": connections.port}}
        )
        async with asyncio.TaskGroup() as group:
            running = [
                group.create_task(connections.accept()),
                group.create_task(poll(connections.sweep, config.request_seconds / 10)),
                group.create_task(poll(certificate.refresh, config.poll_seconds)),
            ]
            try:
                yield connections
            finally:
                for task in running:
                    task.cancel()
                await connections.close()


async def poll(refresh: Callable[[], None], seconds: float) -> Never:
    """Call `refresh` periodically, forever."""
    while True:
        await asyncio.sleep(seconds)
        refresh()


def _listener(host: str | None, port: int) -> socket.socket:
    """Listen at an address, by default at all of the machine.

    Raises OSError if that is not possible.
    """
    is_dual = host is None and socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if is_dual or ":" in (host or "") else socket.AF_INET
    try:
        listener = socket.create_server(
            (host or "", port), family=family, backlog=BACKLOG, dualstack_ipv6=is_dual
        )
    except OSError as error:
        reason = (
            os.strerror(error.errno)
            if error.errno and error.errno > 0
            else str(error.strerror or error)
        )
        where = f"{host or '*'}:{port}"
        raise OSError(
            f"cannot listen on {where}: {reason.lower()}; choose another address with --listen"
        ) from error
    listener.setblocking(False)
    # Accepted connections inherit it.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
    return listener
