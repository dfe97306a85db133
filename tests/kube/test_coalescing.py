"""While much is asked of the server its answers come together, and none is lost or late for ever."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

import pytest

import kube.coalescing
from kube.coalescing import BYTES, MUCH, Coalescing

LAST = b"."


class Reader(asyncio.Protocol):
    """A connection that takes note of the pieces in which it gets what was sent."""

    def __init__(self, coalescing: Coalescing) -> None:
        self.pieces: list[bytes] = []
        self.got = asyncio.Event()
        """Set by each piece."""
        self.whole = asyncio.Event()
        """Set by the last."""
        self.closed = asyncio.Event()
        self._coalescing = coalescing

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the transport."""
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Keep a piece."""
        self.pieces.append(data)
        self._coalescing.received(self.transport)
        self.got.set()
        if data.endswith(LAST):
            self.whole.set()

    def connection_lost(self, error: Exception | None) -> None:
        """Take note of the end."""
        del error
        self._coalescing.closed(self.transport)
        self.closed.set()

    def least(self) -> int:
        """Return for how many bytes the kernel wakes the reader."""
        found: socket.socket = self.transport.get_extra_info("socket")
        return found.getsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT)


@asynccontextmanager
async def reading(coalescing: Coalescing) -> AsyncIterator[tuple[Reader, asyncio.StreamWriter]]:
    """Connect a reader to somebody who writes."""
    writers = asyncio.Queue[asyncio.StreamWriter]()
    async with await asyncio.start_server(lambda reader, writer: writers.put_nowait(writer), "127.0.0.1", 0) as server:
        address = server.sockets[0].getsockname()
        _, reader = await asyncio.get_running_loop().create_connection(lambda: Reader(coalescing), *address)
        writer = await writers.get()
        try:
            async with asyncio.timeout(10):
                yield reader, writer
        finally:
            reader.transport.abort()
            writer.transport.abort()
            await reader.closed.wait()


def busy(monkeypatch: pytest.MonkeyPatch, seconds: float) -> Coalescing:
    """Return the rhythm of a client that asks for much and rests for so long."""
    monkeypatch.setattr(kube.coalescing, "SECONDS", seconds)
    coalescing = Coalescing(is_on=True)
    coalescing.under_way = MUCH
    return coalescing


@pytest.mark.parametrize(("is_on", "under_way"), [(True, MUCH - 1), (False, 2 * MUCH)])
async def test_who_asks_for_little_is_woken_for_each_byte(is_on: bool, under_way: int) -> None:
    """A change made by hand is not slowed down, and nobody is who does not want it."""
    coalescing = Coalescing(is_on=is_on)
    coalescing.under_way = under_way
    async with reading(coalescing) as (reader, writer):
        writer.write(b"a")
        await reader.got.wait()
        assert reader.least() == 1


async def test_what_comes_while_much_is_under_way_is_read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """After its first piece a connection wakes nobody for a while; then all is read that has come on any."""
    coalescing = busy(monkeypatch, 0.2)
    async with reading(coalescing) as (first, to_first), reading(coalescing) as (second, to_second):
        to_first.write(b"first")
        await first.got.wait()
        assert (first.least(), second.least()) == (BYTES, 1)
        to_second.write(b"second")
        await second.got.wait()
        for piece in (b"a", b"b", b"c", LAST):
            to_first.write(piece)
            to_second.write(piece)
            await asyncio.sleep(0)  # sent by itself
        await first.whole.wait()
        await second.whole.wait()
        assert (first.pieces, second.pieces) == ([b"first", b"abc."], [b"second", b"abc."])


async def test_who_spoke_before_is_held_with_the_first_that_speaks_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rest is one for all of them, whichever comes first; who has never spoken costs nothing."""
    coalescing = busy(monkeypatch, 0.05)
    async with reading(coalescing) as (first, to_first), reading(coalescing) as (second, to_second):
        for reader, writer in ((first, to_first), (second, to_second)):
            writer.write(b"a")
            await reader.got.wait()
        first.got.clear()
        to_first.write(b"b")  # read when the first rest ends, with which the second begins
        await first.got.wait()
        assert (second.pieces, second.least()) == ([b"a"], BYTES)


async def test_the_rest_ends_even_if_nothing_more_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever is asked for little again is woken for each byte again, however the rest began."""
    coalescing = busy(monkeypatch, 0.01)
    async with reading(coalescing) as (reader, writer):
        writer.write(b"a")
        await reader.got.wait()
        coalescing.under_way = 0
        writer.write(LAST)
        await reader.whole.wait()
        assert reader.least() == 1


async def test_much_data_is_read_amid_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """As much as that is not worth waiting with."""
    coalescing = busy(monkeypatch, 3600)
    async with reading(coalescing) as (reader, writer):
        writer.write(b"a")
        await reader.got.wait()
        reader.got.clear()
        writer.write(b"b" * 2 * BYTES)
        await reader.got.wait()


async def test_the_end_of_a_connection_is_heard_amid_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """It wakes whatever is waited for; and a connection that is gone does not disturb the others."""
    coalescing = busy(monkeypatch, 0.2)
    async with reading(coalescing) as (first, to_first), reading(coalescing) as (second, to_second):
        to_first.write(b"a")
        await first.got.wait()
        to_first.transport.abort()
        await first.closed.wait()
        assert second.pieces == []
        to_second.write(LAST)
        await second.whole.wait()
