"""Bounded waits for conditions that no event announces: tests poll here and nowhere else."""

import asyncio
import inspect
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

WITHIN = 60.0
INTERVAL = 0.02


def until(
    sign: Callable[[], T],
    *,
    within: float = WITHIN,
    every: float = INTERVAL,
    problem: Callable[[], object] = str,
) -> T:
    """Return the first true result of a function; after the time, fail with the text of `problem`."""
    deadline = time.monotonic() + within
    while not (result := sign()):
        assert time.monotonic() < deadline, f"not within {within:g} s: {problem()}"
        time.sleep(every)
    return result


async def eventually(
    sign: Callable[[], object], *, within: float = WITHIN, every: float = INTERVAL
) -> None:
    """Wait until a function, or a coroutine function, returns a true result."""
    async with asyncio.timeout(within):
        while True:
            result = sign()
            if inspect.isawaitable(result):
                result = await result
            if result:
                return
            await asyncio.sleep(every)
