"""Tune how a process uses memory: collect garbage rarely, and return what was freed to the system.

Startup objects stay, and reviews and reconciles create no cycles.
"""

import asyncio
import ctypes
import gc
from typing import Never

# A large review must not cause a full collection, which takes tens of milliseconds.
THRESHOLDS = (50_000, 20, 100)
TRIM_SECONDS = 10.0


def collect_rarely() -> None:
    """Collect garbage less often; call this before the large imports, which leave no garbage."""
    gc.set_threshold(*THRESHOLDS)


def settle() -> None:
    """Exclude the objects of startup from garbage collection.

    Do not collect first: that takes a tenth of the startup time and frees a dozen objects.
    """
    collect_rarely()
    gc.freeze()


async def trim(seconds: float = TRIM_SECONDS) -> Never:
    """Return the free pages of glibc's heaps to the system now and then, for ever.

    Nothing where there is no glibc.

    By itself glibc returns only what is free at the end of a heap. The rest that large requests
    have used would stay: 30 MB after bodies of 1 MB. It takes 3 ms to return as much, and less than
    0.5 ms where there is nothing to return.
    """
    malloc_trim = getattr(ctypes.CDLL(None), "malloc_trim", lambda _: 0)
    while True:
        await asyncio.sleep(seconds)
        malloc_trim(0)
