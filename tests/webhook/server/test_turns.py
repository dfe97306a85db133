"""Fair scheduling between client addresses, on the event loop and in the worker thread."""

import asyncio
import threading
import time

import pytest

from webhook.server.turns import LONG, PASSES, Turns

NEVER = float("inf")


class Work:
    """Records whose work was done, in order. The thread waits until it is released."""

    def __init__(self):
        self.done = []
        self.released = threading.Event()

    def long(self, address):
        """Take more processor time than a turn on the event loop may."""
        end = time.thread_time() + 2 * LONG
        while time.thread_time() < end:
            pass
        self.done.append(address)

    def interrupted(self, address):
        """Take a while, but no processor time, as on a busy machine."""
        time.sleep(2 * LONG)
        self.done.append(address)

    def large(self, address):
        """Wait for the test."""
        assert self.released.wait(20)
        self.done.append(address)


async def long(turns, work, address):
    """Do long work on the event loop when it is the turn of an address."""
    await turns.wait(address, NEVER)
    await turns.run((address, "shop"), NEVER, work.long, address, is_short=True)


async def test_long_work_of_an_address_does_not_delay_another_on_the_loop():
    """The last request from another address is done after one piece of work of the first address."""
    turns, work = Turns(), Work()
    await asyncio.gather(*(long(turns, work, address) for address in "aaaaab"))
    assert work.done == ["a", "b", "a", "a", "a", "a"]


async def test_work_that_the_machine_interrupts_is_not_long():
    """The delay is not caused by its address, which does not lose its turn."""
    turns, work = Turns(), Work()
    await turns.run(("a", "shop"), NEVER, work.interrupted, "a", is_short=True)
    await turns.wait("a", time.perf_counter() - 0.01)
    assert work.done == ["a"]


async def test_a_request_of_another_address_is_answered_between_two_pieces_of_long_work():
    """Reading it takes some passes of the event loop."""
    turns, work = Turns(), Work()

    async def read() -> None:
        for _ in range(PASSES - 1):
            await asyncio.sleep(0)
        work.done.append("b")

    await asyncio.gather(long(turns, work, "a"), long(turns, work, "a"), read())
    assert work.done == ["a", "b", "a"]


async def test_addresses_take_turns_in_the_thread():
    """An address has at most one waiting piece of work: the first piece of another address comes before its third."""
    turns, work = Turns(), Work()
    waiting = [
        asyncio.create_task(
            turns.run((address, "shop"), NEVER, work.large, address, is_short=False)
        )
        for address in "aaaabb"
    ]
    await asyncio.sleep(0)
    work.released.set()
    await asyncio.gather(*waiting)
    assert work.done == ["a", "b", "a", "b", "a", "a"]


async def test_namespaces_take_turns_in_the_thread():
    """One API server sends all reviews: a namespace with many reviews gives way to the first of another."""
    turns, work = Turns(), Work()
    waiting = [
        asyncio.create_task(
            turns.run(("a", namespace), NEVER, work.large, namespace, is_short=False)
        )
        for namespace in ("shop", "shop", "shop", "lab", "lab")
    ]
    await asyncio.sleep(0)
    work.released.set()
    await asyncio.gather(*waiting)
    assert work.done == ["shop", "lab", "shop", "lab", "shop"]


async def test_work_whose_turn_comes_too_late_is_not_done():
    """The caller gets a TimeoutError instead, on the event loop too."""
    turns, work = Turns(), Work()
    first = asyncio.create_task(
        turns.run(("a", "shop"), NEVER, work.large, "first", is_short=False)
    )
    await asyncio.sleep(0)
    with pytest.raises(TimeoutError):
        await turns.run(
            ("a", "shop"), time.perf_counter() + 0.01, work.large, "late", is_short=False
        )
    await turns.run(("a", "shop"), NEVER, work.long, "long", is_short=True)
    with pytest.raises(TimeoutError):
        await turns.wait("a", time.perf_counter() - 0.01)
    work.released.set()
    await first
    await turns.run(("a", "shop"), NEVER, work.large, "next", is_short=False)
    assert work.done == ["long", "first", "next"]
