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
    ) -> None:
        self._endpoint = endpoint
        self._timeout = timeout
        self._on_response = on_response or (lambda method, code, seconds: None)
        self._connections: Connections | None = None
        self._authorized: tuple[str | None, str] = (None, "")
        url = urlsplit(endpoint.url)
        self._origin = f"{url.scheme}://{endpoint.host}"
        self._base = url.path.rstrip("/")
        headers = f"Host: {endpoint.host}\r\nUser-Agent: {user_agent}\r\nAccept-Encoding: identity\r\n"
        if endpoint.proxy and url.scheme == "http":
            self._base = self._origin + self._base
            headers += proxy.authorization(urlsplit(endpoint.proxy))
        self._headers = f" HTTP/1.1\r\n{headers}"

    async def __aenter__(self) -> Self:
        self._connections = Connections(self._endpoint)
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
        try:
            answer = await self.ask(method, target, body=body, content_type=content_type, accept=accept, gate=gate)
        except OSError as error:
            raise self._unreachable(error) from error
        decoded = decode(good(answer).body)
        if decoded is None:
            raise ServerError(answer.status, "NotJSON", "an answer that is not a JSON object")
        return decoded

    @asynccontextmanager
    async def stream(self, target: str, take: Callable[[Lines], None], accept: str = JSON) -> AsyncIterator[Stream]:
        """Open a watch, whose lines `take` gets; whoever waits for its end bounds the wait for more."""
        connections, request = self._used(), await self._request("GET", target, None, JSON, accept)
        stream = Stream(take, self._unreachable)
        loop, code = asyncio.get_running_loop(), 0
        started = loop.time()
        try:
            answer, connection = await connections.open(request, started + self._timeout, stream)
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

    async def ask(
        self,
        method: str,
        target: str,
        *,
        body: bytes | None = None,
        content_type: str = JSON,
        accept: str = JSON,
        gate: Gate | None = None,
    ) -> Answer:
        """Send one request and return the answer, whatever it is; OSError where none came."""
        connections, request = self._used(), await self._request(method, target, body, content_type, accept)
        loop, code = asyncio.get_running_loop(), 0
        started = loop.time()
        try:
            answer = await connections.exchange(request, started + self._timeout, gate, again=method in IDEMPOTENT)
            code = answer.status
        finally:
            self._on_response(method, code, loop.time() - started)
        return answer

    def _used(self) -> Connections:
        if self._connections is None:
            raise RuntimeError("the client is used outside its context manager")
        return self._connections

    async def _request(self, method: str, target: str, body: bytes | None, content_type: str, accept: str) -> bytes:
        """Return the bytes of a request."""
        authorization = await self._authorization()
        head = f"{method} {self._base}{target}{self._headers}{authorization}Accept: {accept}\r\n"
        if body is None:
            return f"{head}\r\n".encode("latin-1")
        return f"{head}Content-Type: {content_type}\r\nContent-Length: {len(body)}\r\n\r\n".encode("latin-1") + body

    async def _authorization(self) -> str:
        """Return the header that says who we are, with the end of its line."""
        try:
            said = await self._endpoint.authorization()
        except CredentialsError as error:
            raise Unauthorized(401, "NoCredentials", str(error)) from error
        if said is None:
            return ""
        if said != self._authorized[0]:
            if not (said.isascii() and said.isprintable()):
                raise Unauthorized(401, "NoCredentials", "a token with characters that no token has")
            self._authorized = (said, f"Authorization: {said}\r\n")
        return self._authorized[1]

    def _unreachable(self, error: OSError) -> Unreachable:
        reason = reason_of(error, self._timeout)
        return Unreachable(f"cannot reach the API server at {self._origin}: {reason}")


def good(answer: Answer) -> Answer:
    """Return an answer that is JSON and tells of success; raise what any other means."""
    if not answer.is_good:
        raise error_for(answer.status, decode(answer.body), answer.retry_after or None)
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
