"""uvloop's event loop, which connects to an IP address while a resolver hangs."""

import socket
from typing import Any

import uvloop


class Loop(uvloop.Loop):
    """uvloop's event loop.

    Its `sock_connect` asks `getaddrinfo` for IP addresses too, without a socket type, and then
    waits for one of two threads: those that host names with a hung resolver occupy.
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
        """Return the addresses of a host; with a type, IP addresses are answered at once."""
        return await super().getaddrinfo(
            host,
            port,
            family=family,
            type=type or socket.SOCK_STREAM,
            proto=proto,
            flags=flags,
        )
