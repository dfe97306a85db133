"""One connection: whatever a server makes of an answer is understood, or is none."""

import asyncio
from collections.abc import Iterator

import pytest

from kube.endpoint import CredentialsError, Endpoint
from kube.errors import Unauthorized, Unreachable
from kube.transport import Transport
from tests.kube.servers import CLOSE, GOOD, SILENCE, answering

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
CHUNKED = HEAD + b'Transfer-Encoding: chunked\r\n\r\n3\r\n{"a\r\n5;x=y\r\n": 1}\r\n0\r\nTrailer: x\r\n\r\n'
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
HINTS = b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\nContent-Type: text/html\r\n\r\n"


def client(url: str, timeout: float = 10.0) -> Transport:
    """Return a client of a server."""
    return Transport(Endpoint(url), user_agent="test/1", timeout=timeout)


def pieces(answer: bytes, size: int) -> Iterator[bytes]:
    """Yield an answer in pieces of a size."""
    for start in range(0, len(answer), size):
        yield answer[start : start + size]


KEPT = [
    GOOD,
    CHUNKED,
    CONTINUE + CONTINUE + HINTS + GOOD,
    GOOD.replace(b"Content-Type: application/json", b"CONTENT-TYPE:Application/JSON ; charset=utf-8"),
    GOOD.replace(b"HTTP/1.1", b"HTTP/1.0").replace(b"\r\n\r\n", b"\r\nConnection: keep-alive\r\n\r\n"),
]
CLOSED = [
    GOOD.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"),
    GOOD.replace(b"HTTP/1.1", b"HTTP/1.0"),
]


@pytest.mark.parametrize("size", [1, 7, 10_000])
async def test_answers_are_understood_in_any_pieces(size: int) -> None:
    """By length or in chunks, after others that only announce it; the connection is kept where the server keeps it."""
    answers = [pieces(answer, size) for answer in (*KEPT, *CLOSED, GOOD)]
    async with answering(*answers) as server, client(server.url) as transport:
        for _ in answers:
            assert await transport.request("GET", "/") == {"a": 1}
    assert [number for number, _ in server.requests] == [0, 0, 0, 0, 0, 0, 1, 2]


async def test_an_answer_may_last_until_the_end_of_the_connection() -> None:
    """Without a length, and without chunks."""
    async with answering([HEAD + b'\r\n{"a"', b": 1}", CLOSE]) as server, client(server.url) as transport:
        assert await transport.request("GET", "/") == {"a": 1}


async def test_an_answer_may_have_no_body() -> None:
    """204 is whole with its head."""
    async with answering([b"HTTP/1.1 204 No Content\r\n\r\n"], [GOOD]) as server, client(server.url) as transport:
        found = await transport.ask("GET", "/")
        assert (found.status, found.content_type, found.retry_after, found.body) == (204, "", None, b"")
        await transport.request("GET", "/")
    assert server.opened == 1


async def test_bodies_may_be_huge() -> None:
    """Both ways: four megabytes in chunks come, two go."""
    text = b"x" * 2**22
    chunks = [b"%x\r\n%b\r\n" % (2**16, text[: 2**16])] * 2**6
    answer = [HEAD + b'Transfer-Encoding: chunked\r\n\r\n1\r\n"\r\n', *chunks, b'1\r\n"\r\n0\r\n\r\n']
    async with answering(answer) as server, client(server.url) as transport:
        found = await transport.ask("POST", "/", body=text[: 2**21])
    assert found.body == b'"%b"' % text
    assert server.requests[0][1].endswith(b"Content-Length: 2097152\r\n\r\n" + text[: 2**21])


ENDED = "it closed the connection before the answer was complete"
NO_HTTP = "what it says is not HTTP"


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ([CLOSE], ENDED),
        ([HEAD, CLOSE], ENDED),
        ([CONTINUE, CLOSE], ENDED),
        ([GOOD[:-1], CLOSE], ENDED),
        ([CHUNKED[:-2], CLOSE], ENDED),
        ([b"SSH-2.0-OpenSSH_9.2\r\n"], NO_HTTP),
        ([HEAD + b"X-Padding: ", *[b"x" * 2**14] * 5], NO_HTTP),
        ([b"HTTP/1.1 200 OK\r\nContent-Length: some\r\n\r\n"], NO_HTTP),
        ([b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"], NO_HTTP),
        ([HEAD + b"Transfer-Encoding: chunked\r\n\r\nsome\r\n"], NO_HTTP),
        ([b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: spdy\r\n\r\n"], NO_HTTP),
    ],
)
async def test_half_an_answer_is_none(answer: list[bytes], why: str) -> None:
    """Broken off, or garbage: it says why, and the next request has a connection of its own."""
    async with answering(answer, [GOOD]) as server, client(server.url) as transport:
        with pytest.raises(Unreachable) as caught:
            await transport.request("POST", "/", body=b"{}")
        assert str(caught.value) == f"cannot reach the API server at {server.url}: {why}"
        assert await transport.request("GET", "/") == {"a": 1}
        assert [number for number, _ in server.requests] == [0, 1]


@pytest.mark.parametrize("answer", [SILENCE, GOOD[:-1]])
async def test_an_answer_that_does_not_end_in_time_is_none(answer: bytes) -> None:
    """Whether it has begun or not; what still comes is nobody's answer, for the connection is closed."""
    async with answering([answer]) as server, client(server.url, timeout=0.1) as transport:
        with pytest.raises(Unreachable, match=r"no answer within 0\.1 s"):
            await transport.request("GET", "/")
        assert await server.closed.get() == 0


async def test_a_request_is_one_piece_of_text() -> None:
    """Head and body, with what the server needs to know and nothing else."""
    async with answering([GOOD]) as server, client(f"{server.url}/base/") as transport:
        await transport.request("PATCH", "/x?a=b", body=b"{}", content_type="application/apply-patch+yaml")
    host = server.url.removeprefix("http://")
    assert server.requests == [
        (
            0,
            f"PATCH /base/x?a=b HTTP/1.1\r\nHost: {host}\r\nUser-Agent: test/1\r\nAccept-Encoding: identity\r\n"
            "Accept: application/json\r\nContent-Type: application/apply-patch+yaml\r\nContent-Length: 2\r\n\r\n"
            "{}".encode(),
        )
    ]


async def test_a_cancelled_request_takes_its_connection_with_it() -> None:
    """What may still come would be taken for the answer to another request."""
    async with answering([SILENCE], [GOOD]) as server, client(server.url) as transport:
        waiting = asyncio.create_task(transport.request("GET", "/one"))
        await server.asked.wait()
        waiting.cancel()
        assert await server.closed.get() == 0
        assert await transport.request("GET", "/two") == {"a": 1}


async def test_a_refused_write_sends_nothing_and_keeps_the_connection() -> None:
    """The gate is asked when the connection is there, on every try."""

    def shut() -> None:
        raise LookupError

    async with answering([GOOD], [GOOD]) as server, client(server.url) as transport:
        for _ in range(2):
            with pytest.raises(LookupError):
                await transport.request("POST", "/refused", body=b"{}", gate=shut)
            await transport.request("GET", "/")
    assert [(number, request.split()[1]) for number, request in server.requests] == [(0, b"/"), (0, b"/")]


async def test_a_token_is_no_place_for_headers() -> None:
    """Line breaks in what a kubeconfig or a plugin says are refused, not sent."""

    async def injecting() -> str:
        return "Bearer a\r\nImpersonate-User: admin"

    endpoint = Endpoint("http://127.0.0.1:1", authorization=injecting)
    async with Transport(endpoint, user_agent="test/1", timeout=1) as transport:
        with pytest.raises(Unauthorized) as caught:
            await transport.request("GET", "/")
    assert "Impersonate" not in str(caught.value)
    assert not isinstance(caught.value, CredentialsError)
