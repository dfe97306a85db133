"""The connections of a client: few, kept, found closed, and all closed in the end."""

import asyncio
import os
import socket
import time
from pathlib import Path
from typing import Any

import pytest

import kube.connections
from kube.dial import KEEP_ALIVE, keep_alive_socket
from kube.endpoint import Endpoint, tls
from kube.errors import Unreachable
from kube.transport import Transport
from tests.kube.servers import CLOSE, GOOD, SILENCE, answering
from tests.kube.test_connection import client
from tests.kube.tls import serving

REQUEST = b"GET / HTTP/1.1\r\nHost: test\r\n\r\n"


@pytest.mark.parametrize(
    ("method", "again"), [("GET", True), ("PUT", True), ("DELETE", True), ("PATCH", False), ("POST", False)]
)
async def test_a_kept_connection_that_the_server_closed(method: str, again: bool) -> None:
    """What may be sent twice is sent on a new connection; what may not is never, nobody knows whether it was heard."""
    async with answering([GOOD], [CLOSE], [GOOD]) as server, client(server.url) as transport:
        await transport.request("GET", "/")
        body = None if method == "GET" else b"{}"
        if again:
            assert await transport.request(method, "/", body=body) == {"a": 1}
        else:
            with pytest.raises(Unreachable, match="closed the connection before the answer was complete"):
                await transport.request(method, "/", body=body)
    assert [number for number, _ in server.requests] == [0, 0, 1][: 3 if again else 2]


async def test_what_was_answered_in_part_is_not_sent_again() -> None:
    """Nor is what failed on a new connection."""
    async with answering([GOOD], [GOOD[:5], CLOSE], [CLOSE]) as server, client(server.url) as transport:
        await transport.request("GET", "/")
        for _ in range(2):
            with pytest.raises(Unreachable):
                await transport.request("GET", "/")
    assert [number for number, _ in server.requests] == [0, 0, 1]


async def test_a_connection_closed_in_peace_is_not_used() -> None:
    """It is known to be closed before the next request, so that even a write goes well."""
    async with answering([GOOD, CLOSE], [GOOD]) as server, client(server.url) as transport:
        await transport.request("GET", "/")
        assert transport._connections
        await asyncio.wait([each.closed for each in transport._connections._open])
        assert await transport.request("POST", "/", body=b"{}") == {"a": 1}
    assert server.opened == 2


async def test_few_connections_serve_many_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the limit requests wait for their turn, within their time."""
    monkeypatch.setattr(kube.connections, "CONNECTIONS", 2)
    async with answering(*[[GOOD]] * 20) as server, client(server.url) as transport:
        answers = await asyncio.gather(*(transport.request("GET", "/") for _ in range(20)))
        assert (len(answers), server.opened) == (20, 2)


async def test_who_waits_for_a_connection_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time of a request is that of its turn and its answer together; nothing was sent, and the others go on."""
    monkeypatch.setattr(kube.connections, "CONNECTIONS", 1)
    loop = asyncio.get_running_loop()
    async with answering([SILENCE]) as server:
        connections = kube.connections.Connections(Endpoint(server.url))
        first = asyncio.create_task(connections.exchange(REQUEST, loop.time() + 10, again=False))
        await server.asked.wait()
        with pytest.raises(TimeoutError):
            await connections.exchange(REQUEST, loop.time() + 0.01, again=False)
        assert not first.done()
        await connections.close()
        with pytest.raises(ConnectionError):
            await first
    assert len(server.requests) == 1


@pytest.mark.parametrize(("first", "second"), [(10, 0.05), (0.5, 0.7)])
async def test_each_request_has_its_own_time(first: float, second: float) -> None:
    """On a kept connection too: not that of the request before, be it shorter or longer."""
    loop = asyncio.get_running_loop()
    async with answering([GOOD], [SILENCE]) as server:
        connections = kube.connections.Connections(Endpoint(server.url))
        started = loop.time()
        await connections.exchange(REQUEST, started + first, again=False)
        with pytest.raises(TimeoutError):
            await connections.exchange(REQUEST, started + second, again=False)
        assert 0.9 * second < loop.time() - started < 5  # uvloop's clock counts milliseconds
        await connections.close()
    assert [number for number, _ in server.requests] == [0, 0]


async def test_idle_connections_are_closed_by_us(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the server does; those of requests at work are not."""
    monkeypatch.setattr(kube.connections, "IDLE_SECONDS", 0.05)
    async with answering([GOOD], [GOOD], [GOOD]) as server, client(server.url) as transport:
        await asyncio.gather(*(transport.request("GET", "/") for _ in range(2)))
        assert {await server.closed.get(), await server.closed.get()} == {0, 1}
        assert await transport.request("GET", "/") == {"a": 1}
    assert server.opened == 3


async def test_what_nobody_asked_for_closes_the_connection() -> None:
    """A server may say of an idle connection that it waited too long: the next request does not take it for its own."""
    timed_out = b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n"
    async with answering([GOOD + timed_out], [GOOD]) as server, client(server.url) as transport:
        await transport.request("GET", "/")
        assert await server.closed.get() == 0
        assert await transport.request("POST", "/", body=b"{}") == {"a": 1}


async def test_no_socket_outlives_the_client(tmp_path: Path) -> None:
    """Over TLS too, idle or at work, with a server that answers no farewell; and it takes no time."""
    context, authority = serving(tmp_path, "127.0.0.1")
    security = tls("test", authorities=authority.read_bytes())
    async with answering([GOOD], [GOOD], [SILENCE], tls=context) as server:
        async with Transport(Endpoint(server.url, ssl=security), user_agent="test/1", timeout=10) as transport:
            await asyncio.gather(*(transport.request("GET", "/") for _ in range(2)))
            server.asked.clear()
            waiting = asyncio.create_task(transport.request("GET", "/"))
            await server.asked.wait()
            assert transport._connections
            ours = {each._transport.get_extra_info("socket").fileno() for each in transport._connections._open}
            opened = {os.fstat(number).st_ino for number in ours}
            started = time.monotonic()
        assert time.monotonic() - started < 1
        assert len(opened) == 2
        assert not opened & inodes()
        with pytest.raises(Unreachable):
            await waiting


def inodes() -> set[int]:
    """Return what this process has open."""
    return {each.stat().st_ino for each in Path("/proc/self/fd").iterdir() if each.exists()}


async def test_another_address_of_the_name_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nobody answers at the first."""
    loop = asyncio.get_running_loop()
    if type(loop).__module__.startswith("uvloop"):
        pytest.skip("its methods cannot be replaced")
    real = loop.getaddrinfo

    async def two(host: str, port: int, **options: Any) -> list[Any]:
        assert host == "api.example.test"
        return [*await real("127.0.0.2", port, **options), *await real("127.0.0.1", port, **options)]

    monkeypatch.setattr(loop, "getaddrinfo", two)
    async with answering([GOOD]) as server, client(server.url.replace("127.0.0.1", "api.example.test")) as transport:
        assert await transport.request("GET", "/") == {"a": 1}


def test_sockets_notice_a_peer_that_is_gone() -> None:
    """Keep-alive is on, and what is not acknowledged for a minute ends the connection."""
    address = socket.getaddrinfo("127.0.0.1", 1, type=socket.SOCK_STREAM)[0]
    with keep_alive_socket(address) as created:
        assert created.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        assert created.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1
        options = {name: created.getsockopt(socket.IPPROTO_TCP, getattr(socket, name)) for name in KEEP_ALIVE}
    assert options == KEEP_ALIVE
    assert options["TCP_KEEPIDLE"] + options["TCP_KEEPINTVL"] * options["TCP_KEEPCNT"] <= 90
