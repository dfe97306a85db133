"""Tune the memory of a process: collect garbage rarely, and return free pages to the system.

Garbage is rare: objects of startup stay, and reviews and reconciles create no cycles.
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
    """Return the free pages of glibc's heaps to the system every `seconds`, forever.

    Without glibc, do nothing.

    By itself, glibc returns only the free memory at the end of a heap. The pages of large requests
    would stay: 30 MB after bodies of 1 MB. Returning 30 MB takes 3 ms, and returning nothing less
    than 0.5 ms.
    """
    malloc_trim = getattr(ctypes.CDLL(None), "malloc_trim", lambda _: 0)
    while True:
        await asyncio.sleep(seconds)
        malloc_trim(0)
