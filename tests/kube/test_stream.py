"""A watch at the level of lines: they are handed over whole, in order, in turns, and never after the end."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

import pytest

from kube.errors import ApiError, Gone, Unreachable
from kube.stream import AT_ONCE, BURST, Stream
from tests.kube.servers import CLOSE, SILENCE, answering
from tests.kube.test_connection import CHUNKED, client, pieces

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
END = b"0\r\n\r\n"


def chunk(text: bytes) -> bytes:
    """Return a chunk of a body."""
    return b"%x\r\n%b\r\n" % (len(text), text)


class Taken:
    """What was handed over; ends the stream at a line that says so."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.most = 0
        self.some = asyncio.Event()

    def __call__(self, lines: list[bytes]) -> None:
        """Take lines."""
        self.most = max(self.most, len(lines))
        self.some.set()
        for line in lines:
            if line == b"gone":
                raise Gone(410, "Expired", "too old resource version")
            if line == b"bug":
                raise LookupError
            self.lines.append(line)


@asynccontextmanager
async def watching(*answer: bytes) -> AsyncIterator[tuple[Taken, Stream]]:
    """Open a watch on a server that answers so."""
    taken = Taken()
    async with (
        answering(answer) as server,
        client(server.url) as transport,
        asyncio.timeout(10),
        transport.stream("/", taken) as stream,
    ):
        yield taken, stream


@pytest.mark.parametrize("size", [1, 5, 10_000])
async def test_lines_come_whole_and_in_order(size: int) -> None:
    """However the server cuts them; blank ones are none, and what the end leaves unfinished is dropped."""
    body = b"one\n\ntwo\n" + b"x" * 50 + b"\nunfinished"
    answer = HEAD + b"".join(map(chunk, pieces(body, 3))) + END
    async with watching(*pieces(answer, size)) as (taken, stream):
        assert await stream.ended(within=5)
    assert taken.lines == [b"one", b"two", b"x" * 50]


async def test_a_line_may_be_of_any_length() -> None:
    """Two megabytes in many chunks are put together once."""
    text = b"x" * 2**21
    body = [chunk(each) for each in pieces(text, 2**15)]
    async with watching(HEAD, *body, chunk(b"\n"), END) as (taken, stream):
        assert await stream.ended(within=10)
    assert taken.lines == [text]


async def test_others_have_their_turn_amid_a_burst() -> None:
    """Of many lines, or of many bytes, that come at once a part is taken in each turn of the event loop."""
    lines = [b"%d" % number for number in range(20 * AT_ONCE)] + [b"x" * BURST] * 20
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count())
    async with watching(HEAD + chunk(b"\n".join([*lines, b""])) + END) as (taken, stream):
        before = turns
        assert await stream.ended(within=10)
    counting.cancel()
    assert taken.lines == lines
    assert taken.most <= AT_ONCE
    assert turns - before >= 20


@pytest.mark.parametrize("size", [20, 10_000])
async def test_whoever_takes_a_line_may_end_the_stream(size: int) -> None:
    """What is raised then is what waiting for the end raises; nothing more is taken."""
    body = chunk(b"one\ngone\n") + chunk(b"two\n") + END
    async with watching(*pieces(HEAD + body, size)) as (taken, stream):
        with pytest.raises(Gone, match="too old resource version"):
            await stream.ended(within=5)
    assert taken.lines == [b"one"]


async def test_a_mistake_in_what_takes_lines_is_not_swallowed() -> None:
    """It reaches whoever waits, and the event loop."""
    told: list[BaseException] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context["exception"]))
    async with watching(HEAD, chunk(b"bug\n"), SILENCE) as (_, stream):
        with pytest.raises(LookupError):
            await stream.ended(within=5)
    assert [type(each) for each in told] == [LookupError]


@pytest.mark.parametrize(
    ("rest", "why"),
    [
        ([CLOSE], "it closed the connection before the answer was complete"),
        ([b"some\r\n"], "what it says is not HTTP"),
    ],
)
async def test_a_stream_that_breaks_says_why(rest: Iterable[bytes], why: str) -> None:
    """What had come is taken first."""
    async with watching(HEAD + chunk(b"one\ntw"), *rest) as (taken, stream):
        with pytest.raises(Unreachable, match=why):
            await stream.ended(within=5)
    assert taken.lines == [b"one"]


async def test_a_silent_stream_is_known_to_be_silent() -> None:
    """For how long it was, by the clock of the event loop; a line ends it."""
    loop = asyncio.get_running_loop()
    started = loop.time()
    async with watching(HEAD, chunk(b"one\n"), SILENCE) as (taken, stream):
        assert not await stream.ended(within=0.05)
        assert 0 < stream.silent() <= loop.time() - started
        heard = loop.time() - stream.silent()
        stream.receive(b"two\n")
        assert loop.time() - stream.silent() > heard
    assert taken.lines == [b"one", b"two"]


async def test_nothing_is_taken_after_the_end() -> None:
    """Not even what waits for its turn when the caller leaves."""
    taken = Taken()
    body = b"".join(b"%d\n" % number for number in range(10 * AT_ONCE))
    async with answering([HEAD + chunk(body), SILENCE]) as server, client(server.url) as transport:
        async with transport.stream("/", taken):
            await taken.some.wait()
            before = len(taken.lines)
        assert await server.closed.get() == 0
    assert len(taken.lines) == before < 10 * AT_ONCE


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (CHUNKED.replace(b"200 OK", b"503 Unavailable\r\nRetry-After: 7"), "503 Unknown: an answer without a Status"),
        (CHUNKED.replace(b"json", b"html"), "200 NotJSON: an answer of type application/html, not JSON"),
    ],
)
async def test_a_stream_that_is_refused_is_none(answer: bytes, problem: str) -> None:
    """The whole answer says why."""
    with pytest.raises(ApiError) as caught:
        async with watching(answer):
            pass
    assert str(caught.value) == problem
    assert caught.value.retry_after == (7 if caught.value.code == 503 else None)
