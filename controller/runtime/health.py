"""Readiness of a controller process, as a check: it returns what is wrong, or None."""

import time
from collections.abc import Callable, Iterator

from controller.runtime.cache import Caches
from controller.runtime.leader import Election

MAX_SILENCE = 150.0  # seconds without a word from the API server


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
