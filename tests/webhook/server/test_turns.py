"""Turns of addresses: on the event loop, and in the thread beside it."""

import asyncio
import threading
import time

import pytest

from webhook.server.turns import LONG, Turns

NEVER = float("inf")


class Work:
    """Records whose work was done, in order. The thread waits until it is released."""

    def __init__(self):
        self.done = []
        self.released = threading.Event()

    def long(self, address):
        """Take longer than a turn on the event loop may."""
        time.sleep(2 * LONG)
        self.done.append(address)

    def large(self, address):
        """Wait for the test."""
        assert self.released.wait(20)
        self.done.append(address)


async def test_long_work_of_an_address_does_not_delay_another_on_the_loop():
    """What comes last from another address is done after one of the first address."""
    turns, work = Turns(), Work()
    await asyncio.gather(*(turns.on_loop(address, NEVER, work.long, address) for address in "aaaaab"))
    assert work.done == ["a", "b", "a", "a", "a", "a"]


async def test_addresses_take_turns_in_the_thread():
    """An address waits there with one piece of work at a time: another one's first is done before its third."""
    turns, work = Turns(), Work()
    waiting = [asyncio.create_task(turns.beside(address, NEVER, work.large, address)) for address in "aaaabb"]
    await asyncio.sleep(0)
    work.released.set()
    await asyncio.gather(*waiting)
    assert work.done == ["a", "b", "a", "b", "a", "a"]


async def test_work_whose_turn_comes_too_late_is_not_done():
    """The caller gets a TimeoutError instead, on the event loop too."""
    turns, work = Turns(), Work()
    first = asyncio.create_task(turns.beside("a", NEVER, work.large, "first"))
    await asyncio.sleep(0)
    with pytest.raises(TimeoutError):
        await turns.beside("a", time.perf_counter() + 0.01, work.large, "late")
    with pytest.raises(TimeoutError):
        await turns.on_loop("a", time.perf_counter() - 0.01, work.long, "late")
    work.released.set()
    await first
    await turns.beside("a", NEVER, work.large, "next")
    assert work.done == ["first", "next"]
