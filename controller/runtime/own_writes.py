"""What we wrote and the caches have not shown us yet: nobody should decide on older news than their own."""

import time
from collections import defaultdict
from collections.abc import Callable
from typing import NamedTuple

from controller.runtime.caches import Cache
from controller.runtime.result import Request
from kube.changes import Change

PATIENCE = 5.0  # seconds; after that the objects are read from the API server instead


class Written(NamedTuple):
    """One write of ours: its answer had this version, or it deleted the object with this uid."""

    cache: Cache
    key: str
    at: float
    resource_version: int = 0
    deleted: str = ""
    is_planned_on: bool = True
    """Whether the plan has seen the answer."""

    @property
    def is_seen(self) -> bool:
        """Whether the cache knows of it."""
        if self.deleted:
            entry = self.cache.entry(self.key)
            return entry is None or entry.uid != self.deleted or entry.deleting
        return self.cache.has_seen(self.key, self.resource_version)


class OwnWrites:
    """The last write of each request to each object, until the caches have seen it."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic, patience: float = PATIENCE) -> None:
        self._clock = clock
        self._patience = patience
        self._written: defaultdict[Request, dict[tuple[Cache, str], Written]] = defaultdict(dict)
        self._writers: defaultdict[tuple[Cache, str], set[Request]] = defaultdict(set)

    def wrote(
        self, request: Request, cache: Cache, key: str, resource_version: int, *, is_planned_on: bool = True
    ) -> None:
        """Remember a write made for `request`."""
        self._remember(request, Written(cache, key, self._clock(), resource_version, is_planned_on=is_planned_on))

    def deleted(self, request: Request, cache: Cache, key: str, uid: str) -> None:
        """Remember that an object was deleted for `request`."""
        self._remember(request, Written(cache, key, self._clock(), deleted=uid))

    def unseen(self, request: Request) -> list[Written]:
        """Return the writes for `request` that the caches do not know of yet, and forget the others."""
        if request not in self._written:
            return []
        for place, each in list(self._written[request].items()):
            if each.is_seen:
                self._forget(request, place)
        return list(self._written.get(request, {}).values())

    def writers(self, cache: Cache, key: str) -> list[Request]:
        """Return the requests for which an object was written that the caches did not know of."""
        return list(self._writers.get((cache, key), ()))

    def is_echo(self, request: Request, cache: Cache, change: Change) -> bool:
        """Tell whether a change is just what was written for `request`, whose plan has seen the answer already."""
        places = self._written.get(request)
        written = places.get((cache, change.key)) if places else None
        if written is None or change.new is None or not written.is_planned_on:
            return False
        return change.new.resource_version == written.resource_version

    def wait(self, request: Request) -> float:
        """Return how long `request` should still wait for the caches: 0 once they know, or patience is at its end."""
        unseen = self.unseen(request)
        if not unseen:
            return 0.0
        return max(0.0, max(each.at for each in unseen) + self._patience - self._clock())

    def forget(self, request: Request) -> None:
        """Forget all writes for `request`: what they wrote has been read from the API server."""
        for place in list(self._written.get(request, ())):
            self._forget(request, place)

    def _remember(self, request: Request, written: Written) -> None:
        place = (written.cache, written.key)
        self._written[request][place] = written
        self._writers[place].add(request)

    def _forget(self, request: Request, place: tuple[Cache, str]) -> None:
        del self._written[request][place]
        if not self._written[request]:
            del self._written[request]
        self._writers[place].discard(request)
        if not self._writers[place]:
            del self._writers[place]
