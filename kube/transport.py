"""Requests to the API server as HTTP: headers, authorization, JSON, time-outs, and failures as typed errors."""

import asyncio
import os
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Self
from urllib.parse import urlsplit

import orjson

from kube import proxy
from kube.connection import JSON, Answer, Gate, NoAnswerError
from kube.connections import Connections
from kube.endpoint import CredentialsError, Endpoint
from kube.errors import ServerError, Unauthorized, Unreachable, error_for
from kube.stream import Lines, Stream

IDEMPOTENT = ("GET", "PUT", "DELETE")  # these may be sent again where nobody knows whether they arrived


class Transport:
    """Sends requests and opens streams; an async context manager that owns its connections."""

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        user_agent: str,
        timeout: float,
        on_response: Callable[[str, int, float], None] | None = None,
        coalesces: bool = False,
    ) -> None:
        self._endpoint = endpoint
        self._timeout = timeout
        self._coalesces = coalesces
        self._on_response = on_response or (lambda method, code, seconds: None)
        self._connections: Connections | None = None
        url = urlsplit(endpoint.url)
        self._origin = f"{url.scheme}://{endpoint.host}"
        self._base = url.path.rstrip("/")
        headers = f"Host: {endpoint.host}\r\nUser-Agent: {user_agent}\r\nAccept-Encoding: identity\r\n"
        if endpoint.proxy and url.scheme == "http":
            self._base = self._origin + self._base
            headers += proxy.authorization(urlsplit(endpoint.proxy))
        self._unauthorized = self._headers = f" HTTP/1.1\r\n{headers}"
        self._authorized: str | None = None

    async def __aenter__(self) -> Self:
        self._connections = Connections(self._endpoint, coalesces=self._coalesces)
        return self

    async def __aexit__(self, *exception: object) -> None:
        connections, self._connections = self._connections, None
        if connections is not None:
            await connections.close()

    async def request(
        self,
        method: str,
        target: str,
        *,
        body: bytes | None = None,
        content_type: str = JSON,
        accept: str = JSON,
        gate: Gate | None = None,
    ) -> dict[str, Any]:
        """Send one request and return the decoded answer; raise what `kube.errors` has for anything but 2xx.

        `target` is the path and the query. `gate` is asked when the first byte is about to go, and may raise.
        """
        message = await self._message(method, target, body, content_type, accept)
        try:
            answer = await self._exchange(method, message, gate)
        except OSError as error:
            raise self._unreachable(error) from error
        decoded = decode(good(answer).body)
        if decoded is None:
            raise ServerError(answer.status, "NotJSON", "an answer that is not a JSON object")
        return decoded

    @asynccontextmanager
    async def stream(self, target: str, take: Callable[[Lines], None], accept: str = JSON) -> AsyncIterator[Stream]:
        """Open a watch, whose lines `take` gets; whoever waits for its end bounds the wait for more."""
        connections, message = self._used(), await self._message("GET", target, None, JSON, accept)
        stream = Stream(take, self._unreachable)
        loop, code = asyncio.get_running_loop(), 0
        started = loop.time()
        try:
            answer, connection = await connections.open(message, started + self._timeout, stream)
            code = answer.status
        except OSError as error:
            raise self._unreachable(error) from error
        finally:
            self._on_response("GET", code, loop.time() - started)
        try:
            good(answer)
            yield stream
        finally:
            stream.close()
            connection.abort()

    async def ask(self, method: str, target: str, *, body: bytes | None = None) -> Answer:
        """Send one request and return the answer, whatever it is; OSError where none came."""
        return await self._exchange(method, await self._message(method, target, body, JSON, JSON))

    async def _exchange(self, method: str, message: bytes, gate: Gate | None = None) -> Answer:
        """Send a request, and have its answer counted."""
        connections, loop, code = self._used(), asyncio.get_running_loop(), 0
        started = loop.time()
        try:
            answer = await connections.exchange(message, started + self._timeout, gate, again=method in IDEMPOTENT)
            code = answer.status
        finally:
            self._on_response(method, code, loop.time() - started)
        return answer

    def _used(self) -> Connections:
        if self._connections is None:
            raise RuntimeError("the client is used outside its context manager")
        return self._connections

    async def _message(self, method: str, target: str, body: bytes | None, content_type: str, accept: str) -> bytes:
        """Return the bytes of a request."""
        try:
            said = self._endpoint.authorization()
            if not (said is None or isinstance(said, str)):
                said = await said
        except CredentialsError as error:
            raise Unauthorized(401, "NoCredentials", str(error)) from error
        if said != self._authorized:
            self._authorize(said)
        head = f"{method} {self._base}{target}{self._headers}Accept: {accept}\r\n"
        if body is None:
            return f"{head}\r\n".encode()
        return f"{head}Content-Type: {content_type}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body

    def _authorize(self, said: str | None) -> None:
        """Let the headers say who we are."""
        if said is not None and not (said.isascii() and said.isprintable()):
            raise Unauthorized(401, "NoCredentials", "a token with characters that no token has")
        self._authorized = said
        self._headers = self._unauthorized if said is None else f"{self._unauthorized}Authorization: {said}\r\n"

    def _unreachable(self, error: OSError) -> Unreachable:
        reason = reason_of(error, self._timeout)
        return Unreachable(f"cannot reach the API server at {self._origin}: {reason}")


def good(answer: Answer) -> Answer:
    """Return an answer that is JSON and tells of success; raise what any other means."""
    if not answer.is_good:
        raise error_for(answer.status, decode(answer.body), answer.retry_after)
    if answer.content_type != JSON:
        raise ServerError(answer.status, "NotJSON", f"an answer of type {answer.content_type or 'unknown'}, not JSON")
    return answer


def reason_of(error: OSError, seconds: float) -> str:
    """Say in a few words why a request that had so many seconds got no whole answer."""
    match error:
        case NoAnswerError():
            return str(error)
        case ssl.SSLCertVerificationError():
            return f"its certificate is not trusted ({error.verify_message or 'of another host'})"
        case ssl.SSLError():
            return f"the TLS handshake failed ({error.reason or 'broken off'})"
        case socket.gaierror():
            return "its name is not known"
        case OSError(errno=int(number)) if number > 0:
            return os.strerror(number).lower()
        case TimeoutError():
            return f"no answer within {seconds:g} s"
        case _:
            return f"the connection failed ({type(error).__name__})"


def decode(answer: bytes) -> dict[str, Any] | None:
    """Return the JSON object in `answer`, or None if it is anything else."""
    try:
        decoded = orjson.loads(answer)
    except orjson.JSONDecodeError:
        return None
    return decoded if isinstance(decoded, dict) else None
