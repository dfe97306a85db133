"""Memory that was freed returns to the system."""

import asyncio
import os

from benchmarks.measured import megabytes
from gatewright.processes import memory
from tests.waiting import eventually

BODIES, BODY = (
    500,
    100_000,
)  # below the size that glibc takes from the system, and returns to it, by itself


async def test_freed_memory_returns_though_some_between_stays_in_use():
    """By itself glibc returns only the end of the heap."""
    bodies = [bytes([number % 256]) * BODY for number in range(BODIES)]
    full = megabytes(os.getpid())
    kept = bodies[::10]
    bodies.clear()
    trimming = asyncio.create_task(memory.trim(0))
    most = full - 0.8 * BODIES * BODY / 2**20
    await eventually(lambda: megabytes(os.getpid()) <= most, every=0)
    trimming.cancel()
    assert len(kept) == BODIES / 10
