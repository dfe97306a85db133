"""An HTTP proxy between the client and the API server: it tunnels TLS, or rejects the connection."""

import asyncio
import ssl
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from kube.endpoint import Endpoint, static_token, tls
from kube.errors import Unreachable
from kube.transport import Transport
from tests.kube.servers import GOOD, answering
from tests.kube.tls import serving


@dataclass
class HttpProxy:
    """The requests that a proxy got, and its responses."""

    answer: bytes = b"HTTP/1.1 200 Connection established\r\nProxy-Agent: test\r\n\r\n"
    port: int = 0
    heads: list[bytes] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Read the request of the client, answer, and forward bytes."""
        self.heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(self.answer)
        if not self.answer.startswith(b"HTTP/1.1 200 Conn"):
            writer.close()
            return
        host, port = self.heads[-1].split()[1].decode().rsplit(":", 1)
        others = await asyncio.open_connection(host, int(port))
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(passing(reader, others[1]))
                group.create_task(passing(others[0], writer))
        finally:
            for stream in (writer, others[1]):
                stream.transport.abort()


async def passing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Forward the bytes of one side."""
    try:
        while data := await reader.read(65536):
            writer.write(data)
    except OSError:
        pass
    writer.transport.abort()


@asynccontextmanager
async def proxying(
    security: ssl.SSLContext | None = None, **options: bytes
) -> AsyncIterator[HttpProxy]:
    """Run a proxy."""
    proxy = HttpProxy(**options)
    tasks = set[asyncio.Task[None]]()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.ensure_future(proxy.serve(reader, writer)))

    async with await asyncio.start_server(accept, "127.0.0.1", 0, ssl=security) as server:
        proxy.port = server.sockets[0].getsockname()[1]
        yield proxy
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def through(endpoint: Endpoint) -> Transport:
    """Return a client."""
    return Transport(endpoint, user_agent="test/1", timeout=10)


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_tls_uses_a_tunnel(tmp_path: Path, scheme: str) -> None:
    """The proxy gets the address and its own credentials, but neither request nor token. It may use TLS itself."""
    context, authority = serving(tmp_path, "127.0.0.1")
    security = tls("test", authorities=authority.read_bytes())
    async with (
        answering([GOOD], [GOOD], tls=context) as server,
        proxying(context if scheme == "https" else None) as proxy,
    ):
        address = f"{scheme}://me:p%40ss@127.0.0.1:{proxy.port}"
        endpoint = Endpoint(
            server.url, security, static_token("hunter2"), "default", "api.example.test", address
        )
        async with through(endpoint) as transport:
            for _ in range(2):
                assert await transport.request("GET", "/") == b'{"a": 1}'
    (head,) = proxy.heads
    assert head.startswith(f"CONNECT {server.url.removeprefix('https://')} HTTP/1.1\r\n".encode())
    assert f"Proxy-Authorization: Basic {b64encode(b'me:p@ss').decode()}\r\n".encode() in head
    assert b"hunter2" not in head
    assert all(b"Authorization: Bearer hunter2\r\n" in request for _, request in server.requests)


async def test_plain_http_requests_are_sent_to_the_proxy() -> None:
    """The request has the whole URL and the proxy's credentials."""
    async with answering([GOOD]) as proxy:
        address = proxy.url.replace("//", "//me:pass@")
        async with through(
            Endpoint("http://api.example.test:8001/base", proxy=address)
        ) as transport:
            assert await transport.request("GET", "/x") == b'{"a": 1}'
    line, *headers = proxy.requests[0][1].decode().splitlines()
    assert line == "GET http://api.example.test:8001/base/x HTTP/1.1"
    assert {"Host: api.example.test:8001", "Proxy-Authorization: Basic bWU6cGFzcw=="} <= set(
        headers
    )


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (
            b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n",
            "the proxy answered 407",
        ),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "invalid HTTP response"),
        (b"", "the connection closed before the response was complete"),
    ],
)
async def test_a_proxy_may_refuse(answer: bytes, why: str) -> None:
    """The error reports it; no part of the request was sent."""
    async with proxying(answer=answer) as proxy:
        endpoint = Endpoint("https://127.0.0.1:6443", proxy=f"http://127.0.0.1:{proxy.port}")
        async with through(endpoint) as transport:
            with pytest.raises(Unreachable) as caught:
                await transport.request("GET", "/")
    assert str(caught.value) == f"cannot reach the API server at https://127.0.0.1:6443: {why}"
    assert all(head.startswith(b"CONNECT ") for head in proxy.heads)


async def test_a_server_behind_a_proxy_is_verified(tmp_path: Path) -> None:
    """The server's certificate is verified as without a proxy."""
    context, _ = serving(tmp_path, "127.0.0.1")
    _, other = serving(tmp_path, "127.0.0.1")
    async with answering(tls=context) as server, proxying() as proxy:
        security = tls("test", authorities=other.read_bytes())
        endpoint = Endpoint(server.url, ssl=security, proxy=f"http://127.0.0.1:{proxy.port}")
        async with through(endpoint) as transport:
            with pytest.raises(Unreachable, match="its certificate is not trusted"):
                await transport.request("GET", "/")
