"""The work queue of a controller, and the back-off of its keys after failures."""

import asyncio
import heapq
import itertools
import random
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

from controller.runtime.types import RetryableError
from kube.errors import AlreadyExists, ApiError, Conflict

NORMAL = 0.0  # a priority is an offset in seconds, so that no key starves
LOW = -60.0  # initial lists and resyncs: changes by users are processed first

FIRST_DELAY = 1.0
MAX_DELAY = 300.0
MAX_JITTER = 1.0
FIRST_CONFLICT_DELAY = 0.005
FAST_CONFLICT_RETRIES = 5

Key = TypeVar("Key")


@dataclass(slots=True)
class _Entry:
    priority: float
    ready_at: float
    timer: asyncio.TimerHandle | None = None


class WorkQueue(Generic[Key]):
    """Keys with a priority and a time.

    There is one entry per key, with the highest priority and the earliest time requested. A key
    that is added while it is processed is returned again after `done`. Keys of equal priority are
    returned in the order in which they became ready.
    """

    def __init__(
        self,
        *,
        clock: Callable[[], float] = time.monotonic,
        on_add: Callable[[], None] = lambda: None,
    ) -> None:
        """Call `on_add` for each key that is added and was not waiting already."""
        self._clock = clock
        self._on_add = on_add
        self._entries: dict[Key, _Entry] = {}
        self.processing: dict[Key, float] = {}
        """The keys being processed, with the time each was taken."""
        # A heap, which also has replaced entries.
        self._ready: list[tuple[float, int, Key, _Entry]] = []
        self._numbers = itertools.count()
        self._available = asyncio.Semaphore(0)  # at least one permit for each entry of the heap
        self._closed = False

    def __len__(self) -> int:
        """Return how many keys are ready and wait to be taken."""
        now = self._clock()
        return sum(entry.ready_at <= now for entry in list(self._entries.values()))

    def add(self, key: Key, *, priority: float = NORMAL, after: float = 0.0) -> None:
        """Add `key`, ready in `after` seconds."""
        ready_at = self._clock() + after
        old = self._entries.get(key)
        if old is None:
            self._on_add()
        elif priority <= old.priority and ready_at >= old.ready_at:
            return
        else:
            priority, ready_at = max(priority, old.priority), min(ready_at, old.ready_at)
            if old.timer is not None:
                old.timer.cancel()
        entry = self._entries[key] = _Entry(priority, ready_at)
        if key not in self.processing:
            self._schedule(key, entry)

    def take(self) -> tuple[Key, float] | None:
        """Return the next ready key, now being processed, and the seconds it was ready.

        None when none is ready.
        """
        while self._ready:
            _, _, key, entry = heapq.heappop(self._ready)
            if self._entries.get(key) is entry:
                del self._entries[key]
                now = self.processing[key] = self._clock()
                return key, now - entry.ready_at
        return None

    async def get(self) -> tuple[Key, float] | None:
        """Wait for the next ready key, as `take` returns it; None after `close`."""
        while True:
            await self._available.acquire()
            if self._closed:
                self._available.release()  # wake the next worker
                return None
            if taken := self.take():
                return taken

    def done(self, key: Key) -> None:
        """End the processing of `key`."""
        del self.processing[key]
        if (entry := self._entries.get(key)) is not None:
            self._schedule(key, entry)

    def close(self) -> None:
        """Return no more keys; those being processed may finish."""
        self._closed = True
        self._available.release()

    def _schedule(self, key: Key, entry: _Entry) -> None:
        """Make an entry ready when its time comes."""
        wait = entry.ready_at - self._clock()
        if wait > 0:
            entry.timer = asyncio.get_running_loop().call_later(wait, self._make_ready, key, entry)
        else:
            self._make_ready(key, entry)

    def _make_ready(self, key: Key, entry: _Entry) -> None:
        heapq.heappush(
            self._ready, (entry.ready_at - entry.priority, next(self._numbers), key, entry)
        )
        self._available.release()


class KeyBackoff:
    """The back-off per key: 1, 2, 4 … seconds up to five minutes, plus up to 1 s of jitter.

    The counts are in memory.
    """

    def __init__(self, *, uniform: Callable[[float, float], float] = random.uniform) -> None:
        self._uniform = uniform
        self._failures: dict[Hashable, int] = {}

    def count_failure(self, key: Hashable, error: Exception | None = None) -> float:
        """Count a failure and return the seconds to wait: the back-off, or a longer Retry-After.

        The first five conflicts wait milliseconds. A Retry-After of the server is limited to five
        minutes; that of a `RetryableError` is not.
        """
        if isinstance(error, RetryableError) and error.retry_after is not None:
            return error.retry_after
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        fast = FAST_CONFLICT_RETRIES if isinstance(error, Conflict | AlreadyExists) else 0
        if failures < fast:
            delay = FIRST_CONFLICT_DELAY * 2.0**failures * self._uniform(1.0, 2.0)
        else:
            delay = min(FIRST_DELAY * 2.0 ** min(failures - fast, 32), MAX_DELAY) + self._uniform(
                0.0, MAX_JITTER
            )
        requested = (error.retry_after or 0.0) if isinstance(error, ApiError) else 0.0
        return max(delay, min(requested, MAX_DELAY))

    def forget(self, key: Hashable) -> None:
        """Reset the back-off: the key succeeded, or its object was deleted."""
        self._failures.pop(key, None)
