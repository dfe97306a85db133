"""Fair scheduling: slow reviews run in turns by client address and by namespace."""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar
from weakref import WeakValueDictionary

# Seconds of processor time: what a busy machine takes meanwhile does not count. An API server's
# reviews take less, many of which are judged in one pass of the event loop.
LONG = 0.0005
PASSES = 3  # passes of the event loop that a short review takes from its first byte to its answer

T = TypeVar("T")


class Turns:
    """Runs work on the event loop, or in one worker thread.

    Raises TimeoutError if its turn does not come in time.
    """

    def __init__(self) -> None:
        # set when other addresses have had their turn, by the address whose slow work has just
        # ended
        self._others_turn: dict[str, asyncio.Event] = {}
        self._thread = ThreadPoolExecutor(1, "large reviews")
        self._next = asyncio.Lock()
        self._waiting: WeakValueDictionary[tuple[str, ...], asyncio.Lock] = WeakValueDictionary()

    async def wait(self, address: str, deadline: float) -> None:
        """Let other addresses go first, if slow work of this address has just ended."""
        while (turn := self._others_turn.get(address)) is not None:
            await turn.wait()
            if time.perf_counter() > deadline:
                raise TimeoutError

    async def run(
        self,
        place: tuple[str, str],
        deadline: float,
        work: Callable[..., T],
        *arguments: Any,
        is_short: bool,
    ) -> T:
        """Run `work` for an address and a namespace: at once if it is short, else in the thread.

        For the thread, one review of each address waits, and for each address one of each
        namespace, since one API server sends the reviews of all namespaces.
        """
        address, _ = place
        if not is_short:
            own = self._waiting.setdefault(place, asyncio.Lock())
            of_address = self._waiting.setdefault((address,), asyncio.Lock())
            seconds = deadline - time.perf_counter()
            async with asyncio.timeout(seconds), own, of_address, self._next:
                loop = asyncio.get_running_loop()
                result = await loop.run_in_executor(self._thread, work, *arguments)
                # let others run first: the thread may hold the interpreter lock for milliseconds
                for _ in range(PASSES):
                    await asyncio.sleep(0)
                return result
        started = time.thread_time()
        result = work(*arguments)
        if time.thread_time() - started > LONG and address not in self._others_turn:
            self._others_turn[address] = asyncio.Event()
            self._turn_back(address, PASSES)
        return result

    def _turn_back(self, address: str, passes: int) -> None:
        if passes:
            asyncio.get_running_loop().call_soon(self._turn_back, address, passes - 1)
        else:
            self._others_turn.pop(address).set()
