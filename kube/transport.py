"""One HTTP session to the API server: time-outs, keep-alive, authorization, and failures as typed errors."""

import asyncio
import os
import socket
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager, contextmanager
from typing import Any, Self

import aiohttp
import orjson
from aiohappyeyeballs import AddrInfoType
from aiohttp.abc import AbstractStreamWriter
from aiohttp.payload import BytesPayload
from yarl import URL

from kube.endpoint import CredentialsError, Endpoint
from kube.errors import ServerError, Unauthorized, Unreachable, error_for

JSON = "application/json"
CONNECT_SECONDS = 5.0
IDLE_CONNECTION_SECONDS = 60.0  # less than the API server's 90, so that it is we who close
CONNECTIONS = 100
# A peer that vanished is noticed within about a minute, on idle watches too.
KEEP_ALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 60_000}

Lines = list[bytes]  # of a watch, whole ones that came together


class Gated(BytesPayload):
    """A body that asks whether it may be sent when the first byte of its request is about to go, not before.

    Between the decision to write and the write a process may be stopped for any time, and wake as one that no longer
    leads.
    """

    def __init__(self, body: bytes, gate: Callable[[], None]) -> None:
        super().__init__(body)
        self._gate = gate

    async def write_with_length(self, writer: AbstractStreamWriter, content_length: int | None) -> None:
        """Send headers and body, unless the gate raises."""
        self._gate()
        await super().write_with_length(writer, content_length)


class Transport:
    """Sends requests and opens streams; an async context manager that owns its connections."""

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        user_agent: str,
        timeout: float,
        on_response: Callable[[str, int, float], None] | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._endpoint = endpoint
        self._headers = {"User-Agent": user_agent, "Accept-Encoding": "identity"}
        self._timeout = timeout
        self._on_response = on_response or (lambda method, code, seconds: None)
        self._monotonic = monotonic
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        connector = aiohttp.TCPConnector(
            limit=CONNECTIONS, keepalive_timeout=IDLE_CONNECTION_SECONDS, socket_factory=keep_alive_socket
        )
        self._session = aiohttp.ClientSession(
            connector=connector,
            headers=self._headers,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS),  # the rest: asyncio.timeout
            trust_env=False,
            cookie_jar=aiohttp.DummyCookieJar(),
        )
        return self

    async def __aexit__(self, *exception: object) -> None:
        if self._session is not None:
            await self._session.close()

    async def request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        *,
        body: BytesPayload | None = None,
        content_type: str = JSON,
        accept: str = JSON,
    ) -> dict[str, Any]:
        """Send one request and return the decoded answer; raise what `kube.errors` has for anything but 2xx."""
        headers = {"Accept": accept}
        if body is not None:
            headers["Content-Type"] = content_type
        with self._failures():
            async with asyncio.timeout(self._timeout):
                async with await self._open(method, path, query, headers, body) as response:
                    answer = await response.read()
        decoded = decode(answer)
        if decoded is None:
            raise ServerError(response.status, "NotJSON", "an answer that is not a JSON object")
        return decoded

    @asynccontextmanager
    async def stream(
        self, path: str, query: Mapping[str, str], accept: str = JSON
    ) -> AsyncIterator[AsyncIterator[Lines]]:
        """Open a watch and give its lines, those that come together at once; whoever reads bounds the wait for more."""
        with self._failures():
            async with asyncio.timeout(self._timeout):
                response = await self._open("GET", path, query, {"Accept": accept}, None)
        async with response, aclosing(self._lines(response)) as lines:
            try:
                yield lines
            finally:
                if response.connection is not None and response.connection.transport is not None:
                    response.connection.transport.abort()  # without a farewell, which a frozen server never answers

    async def _open(
        self, method: str, path: str, query: Mapping[str, str], headers: dict[str, str], body: BytesPayload | None
    ) -> aiohttp.ClientResponse:
        """Return the answer once its headers say that it is a good one."""
        if self._session is None:
            raise RuntimeError("the client is used outside its context manager")
        try:
            authorization = await self._endpoint.authorization()
        except CredentialsError as error:
            raise Unauthorized(401, "NoCredentials", str(error)) from error
        if authorization is not None:
            headers["Authorization"] = authorization
        started, code = self._monotonic(), 0
        try:
            response = await self._session.request(
                method,
                URL(self._endpoint.url + path),
                params=query,
                headers=headers,
                data=body,
                ssl=self._endpoint.ssl or True,
                server_hostname=self._endpoint.server_hostname,
                proxy=self._endpoint.proxy,
                allow_redirects=False,
            )
            code = response.status
        finally:
            self._on_response(method, code, self._monotonic() - started)
        good = 200 <= code < 300
        if good and response.content_type == JSON:
            return response
        async with response:
            if good:
                raise ServerError(code, "NotJSON", f"an answer of type {response.content_type}, not JSON")
            raise error_for(code, decode(await response.read()), response.headers.get("Retry-After"))

    async def _lines(self, response: aiohttp.ClientResponse) -> AsyncGenerator[Lines]:
        """Yield whole lines without a limit of length; what an ended stream leaves unfinished is dropped.

        Those that have come are yielded together: a listing has thousands, and waiting for each would cost as much as
        reading it.
        """
        unfinished: list[bytes] = []
        with self._failures():
            async for chunk in response.content.iter_any():
                first, *others = chunk.split(b"\n")
                unfinished.append(first)
                if others:
                    lines = [b"".join(unfinished), *others[:-1]]
                    unfinished = others[-1:]
                    if whole := [line for line in lines if line]:
                        yield whole

    @contextmanager
    def _failures(self) -> Iterator[None]:
        """Turn what goes wrong on the way into one error that says where it went to and why."""
        try:
            yield
        except (aiohttp.ClientError, OSError) as error:  # TimeoutError is an OSError
            host = URL(self._endpoint.url).origin()
            raise Unreachable(f"cannot reach the API server at {host}: {reason_of(error, self._timeout)}") from error


def reason_of(error: Exception, seconds: float) -> str:
    """Say in a few words why a request that had so many seconds got no whole answer."""
    match error:
        case aiohttp.ClientConnectorCertificateError():
            reason = getattr(error.certificate_error, "verify_message", "") or "of another host"
            return f"its certificate is not trusted ({reason})"
        case aiohttp.ClientConnectorSSLError():
            return f"the TLS handshake failed ({getattr(error.os_error, 'reason', None) or 'broken off'})"
        case aiohttp.ClientConnectorDNSError():
            return "its name is not known"
        case aiohttp.ConnectionTimeoutError():
            return f"no connection within {CONNECT_SECONDS:g} s"
        case TimeoutError():
            return f"no answer within {seconds:g} s"
        case aiohttp.ServerDisconnectedError() | aiohttp.ClientPayloadError():
            return "it closed the connection before the answer was complete"
        case aiohttp.ClientConnectorError() if isinstance(error.os_error, ConnectionResetError):
            return "it broke the connection off"
        case OSError(errno=int(number)) if number > 0:
            return os.strerror(number).lower()
        case _:
            return f"the connection failed ({type(error).__name__})"


def keep_alive_socket(address: AddrInfoType) -> socket.socket:
    """Return a socket that notices a peer that is gone, as far as this platform can."""
    family, kind, protocol, _, _ = address
    created = socket.socket(family, kind, protocol)
    created.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in KEEP_ALIVE.items():
        if hasattr(socket, option):
            created.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
    return created


def decode(answer: bytes) -> dict[str, Any] | None:
    """Return the JSON object in `answer`, or None if it is anything else."""
    try:
        decoded = orjson.loads(answer)
    except orjson.JSONDecodeError:
        return None
    return decoded if isinstance(decoded, dict) else None
