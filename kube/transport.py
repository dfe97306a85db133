"""Requests to one API server: authorization, time-outs, the write gate, typed errors."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager
from typing import Any, Self

import aiohttp
import orjson
from yarl import URL

from kube.endpoint import CredentialsError, Endpoint
from kube.errors import ServerError, TooLargeError, Unauthorized, Unreachable, error_for
from kube.session import Gate, GatedPayload, new_session, reason_of

JSON = "application/json"

Lines = list[bytes]


class Transport:
    """Sends requests and opens streams; an async context manager that owns its connections."""

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        user_agent: str = "gatewright",
        write_gate: Gate | None = None,
        on_response: Callable[[str, int], None] | None = None,
        timeout: float = 30.0,
    ) -> None:
        """Take the endpoint, the gate to call before each write, and an observer of responses.

        `on_response` gets the HTTP method and the status code (0: no response).
        `timeout` is that of one request in seconds.
        """
        self._endpoint = endpoint
        self._write_gate = write_gate
        self._headers = {"User-Agent": user_agent, "Accept-Encoding": "identity"}
        self._timeout = timeout
        self._on_response = on_response or (lambda method, code: None)
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = new_session(self._headers)
        return self

    async def __aexit__(self, *exception: object) -> None:
        if self._session is not None:
            if self._session.connector is not None:
                # A TLS shutdown would wait for a hung server.
                await self._session.connector.close(abort_ssl=True)
            await self._session.close()

    async def request(
        self,
        method: str,
        target: str,
        *,
        body: bytes | None = None,
        content_type: str = JSON,
        accept: str = JSON,
        gated: bool = False,
        max_bytes: int | None = None,
    ) -> bytes | bytearray:
        """Send one request and return the response's body.

        Raise an error of `kube.errors` for anything but 2xx.

        `target` is the path with its query. With `gated`, the write gate is called before the first
        byte is sent. Raise `TooLargeError` once a response exceeds `max_bytes`.
        """
        gate = self._write_gate if gated else None
        headers = {"Accept": accept} | ({} if body is None else {"Content-Type": content_type})
        data = body if body is None or gate is None else GatedPayload(body, gate)
        try:
            with self._errors():
                async with asyncio.timeout(self._timeout):
                    async with await self._open(method, target, headers, data) as response:
                        if max_bytes is None:
                            return await response.read()
                        return await _read_at_most(response, max_bytes)
        except Unreachable:
            if gate is not None:
                gate()  # aiohttp would report an error of the payload as a failed connection
            raise

    @asynccontextmanager
    async def lines(self, target: str, accept: str = JSON) -> AsyncIterator[AsyncIterator[Lines]]:
        """Open a watch and yield its lines; lines that arrive together are one list."""
        with self._errors():
            async with asyncio.timeout(self._timeout):
                response = await self._open("GET", target, {"Accept": accept}, None)
        async with response, aclosing(self._lines(response)) as lines:
            try:
                yield lines
            finally:
                if response.connection is not None and response.connection.transport is not None:
                    # a TLS shutdown would wait for a hung server
                    response.connection.transport.abort()

    async def _open(
        self, method: str, target: str, headers: dict[str, str], data: bytes | GatedPayload | None
    ) -> aiohttp.ClientResponse:
        """Return the response once its headers announce a JSON body and success."""
        if self._session is None:
            raise RuntimeError("the client is used outside its context manager")
        if (authorization := await self._endpoint.authorization()) is not None:
            headers["Authorization"] = authorization
        code = 0
        try:
            response = await self._session.request(
                method,
                URL(self._endpoint.url + target, encoded=True),
                headers=headers,
                data=data,
                ssl=self._endpoint.ssl or True,
                server_hostname=self._endpoint.server_hostname,
                proxy=self._endpoint.proxy,
                allow_redirects=False,
            )
            code = response.status
        finally:
            self._on_response(method, code)
        succeeded = 200 <= code < 300
        if succeeded and response.content_type == JSON:
            return response
        async with response:
            if succeeded:
                raise ServerError(
                    code, "NotJSON", f"the response has type {response.content_type}, not JSON"
                )
            raise error_for(
                code, decode(await response.read()), response.headers.get("Retry-After")
            )

    async def _lines(self, response: aiohttp.ClientResponse) -> AsyncGenerator[Lines]:
        """Yield whole lines of any length; drop the unfinished line of a stream that ended."""
        unfinished: list[bytes] = []
        with self._errors():
            async for chunk in response.content.iter_any():
                first, *others = chunk.split(b"\n")
                unfinished.append(first)
                if others:
                    lines = [b"".join(unfinished), *others[:-1]]
                    unfinished = others[-1:]
                    if whole := [line for line in lines if line]:
                        yield whole

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Translate failures of the network into one error that names the server and the reason."""
        try:
            yield
        except CredentialsError as error:
            raise Unauthorized(401, "NoCredentials", str(error)) from error
        except (aiohttp.ClientError, OSError) as error:  # TimeoutError is an OSError
            host = URL(self._endpoint.url).origin()
            raise Unreachable(
                f"cannot reach the API server at {host}: {reason_of(error, self._timeout)}"
            ) from error


async def _read_at_most(response: aiohttp.ClientResponse, max_bytes: int) -> bytearray:
    """Return a body; close the connection and raise `TooLargeError` once it is too long."""
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > max_bytes:
            response.close()
            raise TooLargeError(response.status, "TooLarge", f"more than {max_bytes} bytes")
    return body


def decode(answer: bytes | bytearray | memoryview) -> dict[str, Any] | None:
    """Return the JSON object in `answer`, or None for anything else."""
    try:
        decoded = orjson.loads(answer)
    except orjson.JSONDecodeError:
        return None
    return decoded if isinstance(decoded, dict) else None
