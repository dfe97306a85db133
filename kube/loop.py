"""uvloop's event loop, which connects to an IP address while a resolver hangs."""

import socket
from typing import Any

import uvloop


class Loop(uvloop.Loop):
    """uvloop's event loop.

    uvloop's `sock_connect` calls `getaddrinfo` even for IP addresses, without a socket type, and
    then waits for one of two threads, which a hung resolver may occupy.
    """

    async def getaddrinfo(
        self,
        host: Any,
        port: Any,
        *,
        family: int = 0,
        type: int = 0,
        proto: int = 0,
        flags: int = 0,
    ) -> Any:
        """Return the addresses of a host; with a socket type, IP addresses need no thread."""
        return await super().getaddrinfo(
            host,
            port,
            family=family,
            type=type or socket.SOCK_STREAM,
            proto=proto,
            flags=flags,
        )
