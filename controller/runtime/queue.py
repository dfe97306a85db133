"""The work queue: which key is looked at next, and never one key twice at once."""

import asyncio
import heapq
import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

NORMAL = 0
LOW = -100  # the first list and the periodic pass: what people change now goes first
WAIT_PER_PRIORITY = 0.6  # seconds: a key 100 lower goes first once it has waited a minute longer, so nothing starves
OVERTAKEN = 1000  # times at which keys were to come that have come sooner: so many are kept until they pass

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
    """Keys with a priority and a time; one entry a key: the highest priority and the earliest time asked for.

    A key that is added while it is being processed comes again after `done`. Keys of one priority come in the order in
    which they became ready.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.added = 0
        """How often a key was asked for that did not wait already."""
        self._clock = clock
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
            self.added += 1
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
        """Say that `key` is no longer being processed."""
        del self.processing[key]
        if (entry := self._entries.get(key)) is not None:
            self._schedule(key, entry, self._clock())

    def close(self) -> None:
        """Let no key out any more; those being processed may end."""
        self._closed = True
        self._changed.set()

    def _schedule(self, key: Key, entry: _Entry, now: float) -> None:
        if entry.ready_at <= now:
            self._push_ready(key, entry)
        else:
            heapq.heappush(self._delayed, (entry.ready_at, entry.order, key))
            if len(self._delayed) > 2 * len(self._entries) + OVERTAKEN:
                self._delayed = [item for item in self._delayed if self._current(item[2], item[1])]
                heapq.heapify(self._delayed)
        self._changed.set()

    def _push_ready(self, key: Key, entry: _Entry) -> None:
        heapq.heappush(self._ready, (entry.ready_at - entry.priority * WAIT_PER_PRIORITY, entry.order, key))

    def _current(self, key: Key, order: int) -> _Entry | None:
        """Return the entry of a heap's item, None if that is not the key's newest, or the key is not free."""
        entry = self._entries.get(key)
        return entry if entry is not None and entry.order == order and key not in self.processing else None
