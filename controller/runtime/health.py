"""Readiness and liveness of a controller process, as checks: a check returns what is wrong, or None."""

import asyncio
import time
from collections.abc import Callable, Iterator
from typing import Never

from controller.runtime.cache import Caches
from controller.runtime.leader import Election

MAX_SILENCE = 150.0  # seconds without a word from the API server
MAX_LAG = 5.0  # seconds


class Readiness:
    """Ready while the caches are synced and the API server is heard from, whether this process leads or not."""

    def __init__(
        self, caches: Caches, election: Election | None = None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._caches = caches
        self._election = election
        self._clock = clock

    def check(self) -> str | None:
        """Name the caches that are not synced, and the watches and the lease that were silent for too long."""
        return "; ".join(self._faults()) or None

    def _faults(self) -> Iterator[str]:
        for cache in self._caches:
            if cache.is_synced and not cache.is_served:
                continue  # the API server does not have the resource
            for watch in cache.watches:
                why = f" ({watch.problem})" if watch.problem else ""
                if not watch.store.synced.is_set():
                    yield f"{cache.resource.plural}: not synced{why}"
                elif (silence := self._since(watch.last_heard)) > MAX_SILENCE:
                    yield f"{cache.resource.plural}: nothing heard for {silence:.0f} s{why}"
        if self._election is not None and (silence := self._since(self._election.last_heard)) > MAX_SILENCE:
            yield f"lease: nothing heard for {silence:.0f} s"

    def _since(self, heard: float | None) -> float:
        return 0.0 if heard is None else self._clock() - heard


class Heartbeat:
    """Alive while the event loop runs."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._beat = clock()

    async def run(self) -> Never:
        """Beat every second until cancelled."""
        while True:
            self._beat = self._clock()
            await asyncio.sleep(1.0)

    def check(self) -> str | None:
        """Return for how long the event loop has been blocked."""
        lag = self._clock() - self._beat - 1.0
        return f"the event loop stood still for {lag:.0f} s" if lag > MAX_LAG else None
