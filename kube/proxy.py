"""A connection to an HTTP proxy, which is asked to pass on whatever comes, so that TLS is between us and the server."""

import asyncio
from base64 import b64encode
from typing import cast
from urllib.parse import SplitResult, unquote

from kube.connection import NoAnswerError

LONGEST = 64 * 1024  # of an answer's head


class Tunnel(asyncio.Protocol):
    """What the event loop has to say of the connection, until the proxy agrees."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport
        self._said = b""
        self._head: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    async def through_to(self, authority: str, authorization: str) -> asyncio.Transport:
        """Return the transport once the other side of it is the server."""
        self.transport.write(f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n{authorization}\r\n".encode())
        match (await self._head).split(None, 2):
            case [_, b"200", *_]:
                return self.transport
            case [_, code, *_] if code.isdigit():
                raise NoAnswerError(f"its proxy answers with {code.decode()}")
            case _:
                raise NoAnswerError("its proxy does not let us through")

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the transport."""
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Wait for the end of the answer's head; nobody else says anything before we do."""
        self._said += data
        if (b"\r\n\r\n" in self._said or len(self._said) > LONGEST) and not self._head.done():
            self._head.set_result(self._said)

    def connection_lost(self, error: Exception | None) -> None:
        """Take what was said as all."""
        if not self._head.done():
            self._head.set_result(self._said)


def authorization(proxy: SplitResult) -> str:
    """Return the header with a proxy's user and password, if its address has them; with the end of the line."""
    if proxy.username is None:
        return ""
    pair = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}".encode()
    return f"Proxy-Authorization: Basic {b64encode(pair).decode()}\r\n"
