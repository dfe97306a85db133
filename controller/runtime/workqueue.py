"""The work queue of a controller, and the back-off of its keys after failures."""

import asyncio
import heapq
import itertools
import random
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

NORMAL = 0
LOW = -100  # initial lists and periodic passes: what users change now goes first
SECONDS_PER_PRIORITY = 0.6  # a key 100 lower goes first once it has waited a minute longer, so nothing starves
STALE_DELAYS = 1000  # outdated entries of the delay heap that are kept until their time comes

FIRST_DELAY = 1.0
MAX_DELAY = 300.0
MAX_JITTER = 1.0
FIRST_CONFLICT_DELAY = 0.005
FAST_CONFLICT_RETRIES = 5

Key = TypeVar("Key")


class QueueClosedError(Exception):
    """No more keys will come."""


class Taken(NamedTuple, Generic[Key]):
    """A key to process now."""

    key: Key
    priority: int
    waited: float
    """Seconds since it was ready."""


@dataclass(slots=True)
class _Entry:
    priority: int
    ready_at: float
    order: int


class WorkQueue(Generic[Key]):
    """Keys with a priority and a time; one entry a key, with the highest priority and the earliest time asked for.

    A key that is added while it is being processed comes again after `done`. Keys of one priority come in the order in
    which they became ready.
    """

    def __init__(
        self, *, clock: Callable[[], float] = time.monotonic, on_add: Callable[[], None] = lambda: None
    ) -> None:
        """Call `on_add` for each key that is added and was not waiting already."""
        self._clock = clock
        self._on_add = on_add
        self._entries: dict[Key, _Entry] = {}
        self.processing: dict[Key, float] = {}
        """The keys being processed, with the time each was taken."""
        self._delayed: list[tuple[float, int, Key]] = []
        self._ready: list[tuple[float, int, Key]] = []
        self._numbers = itertools.count()
        self._changed = asyncio.Event()
        self._closed = False

    def __len__(self) -> int:
        """Return how many keys wait, those that are not ready yet included."""
        return len(self._entries)

    def add(self, key: Key, *, priority: int = NORMAL, after: float = 0.0) -> None:
        """Ask for `key` in `after` seconds."""
        now = self._clock()
        ready_at = now + after if after > 0 else now
        entry = self._entries.get(key)
        if entry is not None:
            if priority <= entry.priority and ready_at >= entry.ready_at:
                return
            priority, ready_at = max(priority, entry.priority), min(ready_at, entry.ready_at)
        else:
            self._on_add()
        entry = self._entries[key] = _Entry(priority, ready_at, next(self._numbers))
        if key not in self.processing:
            self._schedule(key, entry, now)

    def take(self) -> Taken[Key] | None:
        """Return the next ready key, now being processed; None when none is ready."""
        now = self._clock()
        while self._delayed and self._delayed[0][0] <= now:
            _, order, key = heapq.heappop(self._delayed)
            if (entry := self._current(key, order)) is not None:
                self._push_ready(key, entry)
        while self._ready:
            _, order, key = heapq.heappop(self._ready)
            if (entry := self._current(key, order)) is not None:
                self.processing[key] = now
                del self._entries[key]
                return Taken(key, entry.priority, now - entry.ready_at)
        return None

    async def get(self) -> Taken[Key]:
        """Wait for the next ready key; raises `QueueClosedError` after `close`."""
        while True:
            if self._closed:
                raise QueueClosedError
            taken = self.take()
            if taken is not None:
                return taken
            self._changed.clear()
            wait = self._delayed[0][0] - self._clock() if self._delayed else None
            try:
                async with asyncio.timeout(wait):
                    await self._changed.wait()
            except TimeoutError:
                continue

    def done(self, key: Key) -> None:
        """End the processing of `key`."""
        del self.processing[key]
        if (entry := self._entries.get(key)) is not None:
            self._schedule(key, entry, self._clock())

    def close(self) -> None:
        """Return no more keys; those being processed may end."""
        self._closed = True
        self._changed.set()

    def _schedule(self, key: Key, entry: _Entry, now: float) -> None:
        if entry.ready_at <= now:
            self._push_ready(key, entry)
        else:
            heapq.heappush(self._delayed, (entry.ready_at, entry.order, key))
            if len(self._delayed) > 2 * len(self._entries) + STALE_DELAYS:
                self._delayed = [item for item in self._delayed if self._current(item[2], item[1])]
                heapq.heapify(self._delayed)
        self._changed.set()

    def _push_ready(self, key: Key, entry: _Entry) -> None:
        heapq.heappush(self._ready, (entry.ready_at - entry.priority * SECONDS_PER_PRIORITY, entry.order, key))

    def _current(self, key: Key, order: int) -> _Entry | None:
        """Return the entry of a heap's item; None if that is not the key's newest, or the key is being processed."""
        entry = self._entries.get(key)
        return entry if entry is not None and entry.order == order and key not in self.processing else None


class Backoff:
    """Per key 1, 2, 4 … seconds up to five minutes, plus up to a second of jitter; the counts live in memory."""

    def __init__(self, *, uniform: Callable[[float, float], float] = random.uniform) -> None:
        self._uniform = uniform
        self._failures: dict[Hashable, int] = {}

    def failed(self, key: Hashable, *, conflict: bool = False, asked: float = 0.0) -> float:
        """Count a failure and return the seconds to wait: the back-off, or what the server asked for if longer.

        The first five conflicts wait milliseconds. What the server asks for is limited to five minutes.
        """
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        fast = FAST_CONFLICT_RETRIES if conflict else 0
        if failures < fast:
            delay = FIRST_CONFLICT_DELAY * 2.0**failures * self._uniform(1.0, 2.0)
        else:
            delay = min(FIRST_DELAY * 2.0 ** min(failures - fast, 32), MAX_DELAY) + self._uniform(0.0, MAX_JITTER)
        return max(delay, min(asked, MAX_DELAY))

    def is_fast(self, key: Hashable) -> bool:
        """Return whether a conflict now would be retried within milliseconds."""
        return self._failures.get(key, 0) < FAST_CONFLICT_RETRIES

    def forget(self, key: Hashable) -> None:
        """Begin with the first delay again: the key succeeded, or its object is gone."""
        self._failures.pop(key, None)
