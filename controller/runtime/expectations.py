"""Expectations: a reconcile waits until the caches show its own writes (read-your-writes)."""

import time
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from controller.runtime.cache import Cache
from controller.runtime.types import ReconcileRequest
from kube.resource import JsonObject

PATIENCE = 5.0  # seconds; afterwards the reconcile reads the objects from the API server


class Expectation(NamedTuple):
    """One write of an object, its time (monotonic), and whether the cache has it."""

    cache: Cache
    key: str
    at: float
    is_met: Callable[[], bool]


CacheKey = tuple[Cache, str]


class Expectations:
    """The last write of each request to each object, until the cache has it."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._expected: defaultdict[ReconcileRequest, dict[CacheKey, Expectation]] = defaultdict(
            dict
        )
        self._waiting: defaultdict[CacheKey, set[ReconcileRequest]] = defaultdict(set)

    def wrote(self, request: ReconcileRequest, cache: Cache, key: str, answer: JsonObject) -> None:
        """Expect an object that was written for `request`, as the API server has answered it."""
        is_met = partial(cache.has_seen, key, int(answer["metadata"]["resourceVersion"]))
        self._expected[request][cache, key] = Expectation(cache, key, self._clock(), is_met)

    def expect_deletion(self, request: ReconcileRequest, cache: Cache, key: str, uid: str) -> None:
        """Expect the end of an object that was deleted for `request`."""

        def is_met() -> bool:
            entry = cache.entry(key)
            return entry is None or entry.uid != uid or entry.deleting

        self._expected[request][cache, key] = Expectation(cache, key, self._clock(), is_met)

    def expect_change(self, request: ReconcileRequest, cache: Cache, key: str) -> None:
        """Enqueue `request` at the next change of an object that has a name it needs."""
        self._waiting[cache, key].add(request)

    def unmet(self, request: ReconcileRequest) -> list[Expectation]:
        """Return the writes for `request` that the caches do not have yet; forget the others."""
        unmet = {
            place: expectation
            for place, expectation in self._expected.pop(request, {}).items()
            if not expectation.is_met()
        }
        if unmet:
            self._expected[request] = unmet
        return list(unmet.values())

    def wait(self, request: ReconcileRequest) -> float:
        """Return for how many seconds `request` should still wait for the caches.

        0 when they have all its writes.
        """
        unmet = self.unmet(request)
        wait = max([each.at + PATIENCE - self._clock() for each in unmet], default=0.0)
        for expectation in unmet if wait > 0 else ():
            self._waiting[expectation.cache, expectation.key].add(request)
        return max(0.0, wait)

    def woken(self, cache: Cache, key: str) -> set[ReconcileRequest]:
        """Return the requests that wait for a change of an object, and remove them."""
        return self._waiting.pop((cache, key), set())

    def forget(self, request: ReconcileRequest) -> None:
        """Remove all expectations of `request`."""
        self._expected.pop(request, None)
        for place in [place for place, requests in self._waiting.items() if request in requests]:
            self._waiting[place].discard(request)
            if not self._waiting[place]:
                del self._waiting[place]
