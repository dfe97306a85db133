"""How a connection to the API server is made: its name looked up, all addresses tried, proxies, TLS."""

import asyncio
import socket
import ssl
from collections.abc import Callable
from typing import TypeVar
from urllib.parse import SplitResult, urlsplit

from aiohappyeyeballs import AddrInfoType, start_connection

from kube.connection import Connection, NoAnswerError
from kube.endpoint import Endpoint
from kube.proxy import Tunnel, authorization

CONNECT_SECONDS = 5.0
NEXT_ADDRESS_SECONDS = 0.25  # after which another address of the name is tried as well
# A peer that vanished is noticed within about a minute, on idle watches too.
KEEP_ALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 60_000}
PORTS = {"http": 80, "https": 443}

AnyProtocol = TypeVar("AnyProtocol", bound=asyncio.BaseProtocol)


class Dialer:
    """Makes connections to one API server."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._server = urlsplit(endpoint.url)
        self._hostname = endpoint.server_hostname or self._server.hostname or ""
        self._proxy = urlsplit(endpoint.proxy) if endpoint.proxy else None
        self._ssl = endpoint.ssl

    async def connect(self, protocol: Callable[[], Connection], deadline: float) -> Connection:
        """Return a connection, or raise OSError: by the deadline, or within five seconds if that is sooner."""
        soon = asyncio.get_running_loop().time() + CONNECT_SECONDS
        try:
            async with asyncio.timeout_at(min(soon, deadline)):
                return await self._connect(protocol)
        except (ConnectionResetError, ConnectionAbortedError) as error:
            raise NoAnswerError("it broke the connection off") from error
        except TimeoutError as error:
            if error.errno or deadline < soon:
                raise
            raise NoAnswerError(f"no connection within {CONNECT_SECONDS:g} s") from None

    async def _connect(self, protocol: Callable[[], Connection]) -> Connection:
        if self._proxy is None:
            return await self._open(protocol, self._server, self._hostname)
        if self._server.scheme == "http":  # the proxy itself is asked for what we want
            return await self._open(protocol, self._proxy)
        tunnel = await self._open(Tunnel, self._proxy)
        try:
            transport = await tunnel.through_to(authority(self._server), authorization(self._proxy))
            made = protocol()
            secured = await asyncio.get_running_loop().start_tls(
                transport, made, self._tls(), server_hostname=self._hostname.rstrip(".")
            )
        except BaseException:
            tunnel.transport.abort()
            raise
        if secured is None:
            raise ConnectionResetError
        made.connection_made(secured)
        return made

    async def _open(
        self, protocol: Callable[[], AnyProtocol], where: SplitResult, hostname: str | None = None
    ) -> AnyProtocol:
        loop = asyncio.get_running_loop()
        host, port = address_of(where)
        addresses = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        connected = await start_connection(
            addresses, happy_eyeballs_delay=NEXT_ADDRESS_SECONDS, socket_factory=keep_alive_socket
        )
        if where.scheme == "http":
            _, made = await loop.create_connection(protocol, sock=connected)
        else:
            name = (hostname or host).rstrip(".")  # no certificate has the dot of a complete name
            _, made = await loop.create_connection(protocol, sock=connected, ssl=self._tls(), server_hostname=name)
        return made

    def _tls(self) -> ssl.SSLContext:
        if self._ssl is None:
            self._ssl = ssl.create_default_context()
        return self._ssl


def authority(url: SplitResult) -> str:
    """Return where a proxy is to go to."""
    host, port = address_of(url)
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def address_of(url: SplitResult) -> tuple[str, int]:
    """Return the host and the port of an address."""
    return url.hostname or "", url.port or PORTS[url.scheme]


def keep_alive_socket(address: AddrInfoType) -> socket.socket:
    """Return a socket that notices a peer that is gone, as far as this platform can, and sends without delay."""
    family, kind, protocol, _, _ = address
    created = socket.socket(family, kind, protocol)
    created.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    created.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in KEEP_ALIVE.items():
        if hasattr(socket, option):
            created.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
    return created
