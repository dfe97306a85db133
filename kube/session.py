"""The aiohttp session for an API server: connections, gated bodies, reasons of failures."""

import os
import socket
import sys
from collections.abc import Callable, Mapping, Sequence

import aiohttp
from aiohttp.abc import AbstractStreamWriter
from aiohttp.payload import BytesPayload

CONNECT_SECONDS = 5.0
IDLE_CONNECTION_SECONDS = 60.0  # less than the API server's 90, so that the client closes first
# A dead peer is detected within about a minute, also on idle watches.
KEEP_ALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 60_000}
INCOMPLETE = "the connection closed before the response was complete"
REASONS: dict[type[Exception], str] = {
    aiohttp.ClientConnectorDNSError: "unknown host name",
    aiohttp.ConnectionTimeoutError: f"no connection within {CONNECT_SECONDS:g} s",
    aiohttp.ServerDisconnectedError: INCOMPLETE,
    aiohttp.ClientPayloadError: INCOMPLETE,
    aiohttp.ClientResponseError: "invalid HTTP response",
}

Gate = Callable[[], None]


def new_session(
    headers: Mapping[str, str], middlewares: Sequence[aiohttp.ClientMiddlewareType] = ()
) -> aiohttp.ClientSession:
    """Return a session whose only time-out is that for connecting.

    Proxy environment variables are ignored.
    """
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(
            limit=0,  # workers limit the requests; watches must never wait for a connection
            keepalive_timeout=IDLE_CONNECTION_SECONDS,
            enable_cleanup_closed=sys.version_info
            < (3, 12, 7),  # abort TLS shutdowns that a hung server never completes
            socket_factory=keep_alive_socket,
        ),
        headers=headers,
        middlewares=middlewares,
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS),
        cookie_jar=aiohttp.DummyCookieJar(),
    )


def keep_alive_socket(address: aiohttp.AddrInfoType) -> socket.socket:
    """Return a socket that detects a dead peer, if the platform supports it."""
    family, kind, protocol, _, _ = address
    created = socket.socket(family, kind, protocol)
    created.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in KEEP_ALIVE.items():
        if hasattr(socket, option):
            created.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
    return created


class GatedPayload(BytesPayload):
    """A request body that checks the write gate before its first byte is sent.

    Between the decision to write and the write, a process may be suspended for any time, and resume
    without the Lease.
    """

    def __init__(self, body: bytes, gate: Gate) -> None:
        super().__init__(body)
        self._gate = gate

    async def write_with_length(
        self, writer: AbstractStreamWriter, content_length: int | None
    ) -> None:
        """Send headers and body, unless the gate raises."""
        self._gate()
        await super().write_with_length(writer, content_length)


def reason_of(error: Exception, seconds: float) -> str:
    """Return a short reason why a request with a time-out of `seconds` got no complete response."""
    if (phrase := REASONS.get(type(error))) is not None:
        return phrase
    match error:
        case aiohttp.ClientConnectorCertificateError():
            reason = (
                getattr(error.certificate_error, "verify_message", "") or "issued for another host"
            )
            return f"its certificate is not trusted ({reason})"
        case aiohttp.ClientConnectorSSLError():
            return (
                "the TLS handshake failed "
                f"({getattr(error.os_error, 'reason', None) or 'broken off'})"
            )
        case aiohttp.ClientHttpProxyError():
            return f"the proxy answered {error.status}"
        case TimeoutError():
            return f"no response within {seconds:g} s"
        case aiohttp.ClientConnectorError() if isinstance(error.os_error, ConnectionResetError):
            return "connection reset by peer"
        case OSError(errno=int(number)) if number > 0:
            return os.strerror(number).lower()
        case _:
            return f"the connection failed ({type(error).__name__})"
