"""Turns: long work is done in turns by address, so that one with many connections leaves time for the others."""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar
from weakref import WeakValueDictionary

LONG = 0.0005  # seconds; an API server's reviews take less, many of which are judged in one pass of the event loop

T = TypeVar("T")


class Turns:
    """Runs work on the event loop, or in one thread beside it. TimeoutError where its turn does not come in time."""

    def __init__(self) -> None:
        self._had_theirs: set[str] = set()  # addresses, in this pass of the event loop
        self._thread = ThreadPoolExecutor(1, "large reviews")
        self._next = asyncio.Lock()
        self._of_address: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def wait(self, address: str) -> None:
        """Wait until the event loop has turned to the others, if an address has just had long work done."""
        while address in self._had_theirs:  # noqa: ASYNC110  an event of each pass would cost more
            await asyncio.sleep(0)

    async def on_loop(self, address: str, deadline: float, work: Callable[..., T], *arguments: Any) -> T:
        """Run `work` when it is the turn of its address."""
        await self.wait(address)
        started = time.perf_counter()
        if started > deadline:
            raise TimeoutError
        result = work(*arguments)
        if time.perf_counter() - started > LONG:
            self._had_theirs.add(address)
            asyncio.get_running_loop().call_soon(self._had_theirs.discard, address)
        return result

    async def beside(self, address: str, deadline: float, work: Callable[..., T], *arguments: Any) -> T:
        """Run `work` in the thread, where only one of each address waits for its turn."""
        own = self._of_address.setdefault(address, asyncio.Lock())
        async with asyncio.timeout(deadline - time.perf_counter()), own, self._next:
            return await asyncio.get_running_loop().run_in_executor(self._thread, work, *arguments)
