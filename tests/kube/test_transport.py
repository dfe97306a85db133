"""The transport's additions to aiohttp's session: retries, the write gate, headers, and the lines of a stream."""

import asyncio
import socket
from pathlib import Path

import pytest

from kube.endpoint import Endpoint, tls
from kube.errors import ApiError, Unreachable
from kube.session import KEEP_ALIVE, keep_alive_socket
from kube.transport import Transport
from tests.kube.servers import CLOSE, GOOD, SILENCE, answering
from tests.kube.tls import serving
from tests.waiting import WITHIN

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
END = b"0\r\n\r\n"


def client(url: str) -> Transport:
    """Return a client of a server."""
    return Transport(Endpoint(url), user_agent="test/1", timeout=10)


def chunk(data: bytes) -> bytes:
    """Return a chunk of a body."""
    return b"%x\r\n%b\r\n" % (len(data), data)


async def watched(found: list[bytes], *pieces: bytes) -> None:
    """Append the lines of a watch whose response arrives in these pieces."""
    async with (
        answering(pieces) as server,
        client(server.url) as transport,
        transport.lines("/") as stream,
    ):
        async for lines in stream:
            found += lines


@pytest.mark.parametrize(
    ("method", "again"),
    [("GET", True), ("PUT", True), ("DELETE", True), ("PATCH", False), ("POST", False)],
)
async def test_a_kept_connection_that_the_server_closed(method: str, again: bool) -> None:
    """An idempotent request is sent again on a new connection; any other may have been heard, and is not."""
    async with answering([GOOD], [CLOSE], [GOOD]) as server, client(server.url) as transport:
        await transport.request("GET", "/")
        body = None if method == "GET" else b"{}"
        if again:
            assert await transport.request(method, "/", body=body) == b'{"a": 1}'
        else:
            with pytest.raises(
                Unreachable, match="the connection closed before the response was complete"
            ):
                await transport.request(method, "/", body=body)
    assert [number for number, _ in server.requests] == [0, 0, 1][: 3 if again else 2]


async def test_a_request_has_the_needed_headers_alone() -> None:
    """It has the unchanged path, a user agent, no compression, and the type of the body."""
    async with answering([GOOD]) as server, client(f"{server.url}/base") as transport:
        await transport.request(
            "PATCH", "/x%3Ay?a=b%2Cc", body=b"{}", content_type="application/apply-patch+yaml"
        )
    head, _, body = server.requests[0][1].decode().partition("\r\n\r\n")
    line, *headers = head.splitlines()
    assert (line, body) == ("PATCH /base/x%3Ay?a=b%2Cc HTTP/1.1", "{}")
    assert sorted(headers) == [
        "Accept-Encoding: identity",
        "Accept: application/json",
        "Content-Length: 2",
        "Content-Type: application/apply-patch+yaml",
        f"Host: {server.url.removeprefix('http://')}",
        "User-Agent: test/1",
    ]


async def test_the_gate_decides_when_the_body_is_sent() -> None:
    """The gate is asked after the connection is open: a process may be stopped before, and lose the Lease."""
    opened, leads = list[int](), False

    def gate() -> None:
        opened.append(server.opened)
        if not leads:
            raise LookupError("the lease was lost")

    async with (
        answering([GOOD]) as server,
        Transport(Endpoint(server.url), user_agent="test/1", write_gate=gate) as transport,
    ):
        with pytest.raises(LookupError, match="the lease was lost"):
            await transport.request("POST", "/refused", body=b"{}", gated=True)
        leads = True
        assert await transport.request("POST", "/sent", body=b"{}", gated=True) == b'{"a": 1}'
    assert opened[0] == 1
    assert [request.split()[1] for _, request in server.requests] == [b"/sent"]


@pytest.mark.parametrize(
    "answer", [b"SSH-2.0-OpenSSH_9.2\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: some\r\n\r\n"]
)
async def test_a_server_that_does_not_speak_http(answer: bytes) -> None:
    """The error reports it."""
    async with answering([answer]) as server, client(server.url) as transport:
        with pytest.raises(Unreachable) as caught:
            await transport.request("GET", "/")
    assert (
        str(caught.value) == f"cannot reach the API server at {server.url}: invalid HTTP response"
    )


def test_a_vanished_peer_is_noticed() -> None:
    """Sockets use TCP keep-alive, if the platform has the options."""
    with keep_alive_socket((socket.AF_INET, socket.SOCK_STREAM, 0, "", ("127.0.0.1", 1))) as made:
        assert made.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        found = {
            name: made.getsockopt(socket.IPPROTO_TCP, getattr(socket, name)) for name in KEEP_ALIVE
        }
    assert found == KEEP_ALIVE


@pytest.mark.parametrize("size", [1, 7, 10_000])
async def test_lines_are_whole_however_they_arrive(size: int) -> None:
    """Lines arrive in pieces of any size, over several chunks; empty lines and an incomplete last one are dropped."""
    body = HEAD + chunk(b"one\ntw") + chunk(b"o\n\n") + chunk(b"three\nfou") + END
    found: list[bytes] = []
    await watched(found, *(body[start : start + size] for start in range(0, len(body), size)))
    assert found == [b"one", b"two", b"three"]


async def test_a_stream_that_breaks_is_a_failure() -> None:
    """The lines received before are yielded first."""
    found: list[bytes] = []
    with pytest.raises(Unreachable, match="the connection closed before the response was complete"):
        await watched(found, HEAD + chunk(b"one\ntw"), CLOSE)
    assert found == [b"one"]


@pytest.mark.parametrize(
    ("head", "problem"),
    [
        (
            HEAD.replace(b"200 OK", b"503 Unavailable\r\nRetry-After: 7"),
            "503 Unknown: an answer without a Status",
        ),
        (
            HEAD.replace(b"json", b"html"),
            "200 NotJSON: the response has type application/html, not JSON",
        ),
    ],
)
async def test_a_rejected_stream_is_an_error(head: bytes, problem: str) -> None:
    """The error has the code and the seconds to wait."""
    with pytest.raises(ApiError) as caught:
        await watched([], head + END)
    assert str(caught.value) == problem
    assert caught.value.retry_after == (7 if caught.value.code == 503 else None)


async def test_leaving_a_stream_does_not_wait_for_the_server(tmp_path: Path) -> None:
    """A hanging server does not close TLS; the connection is aborted, and the client's others are closed."""
    context, authority = serving(tmp_path, "127.0.0.1")
    endpoint = Endpoint("", ssl=tls("test", authorities=authority.read_bytes()))
    async with (
        answering([GOOD], [HEAD + chunk(b"one\n"), SILENCE], tls=context) as server,
        asyncio.timeout(WITHIN),
    ):
        async with Transport(
            endpoint._replace(url=server.url), user_agent="test/1", timeout=10
        ) as transport:
            await transport.request("GET", "/")
            async with transport.lines("/") as stream:
                assert await anext(stream) == [b"one"]
            await server.closed.get()
        if server.opened == 2:
            await server.closed.get()
