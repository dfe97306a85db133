"""What we wrote and the caches have not shown us yet: nobody should decide on older news than their own."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from controller.runtime.caches import Cache
from controller.runtime.result import Request

PATIENCE = 5.0  # seconds; after that the objects are read from the API server instead


@dataclass(frozen=True, slots=True)
class Written:
    """One write of ours: its answer had this version."""

    cache: Cache
    key: str
    resource_version: int
    at: float

    @property
    def is_seen(self) -> bool:
        """Whether the cache knows of it."""
        return self.cache.has_seen(self.key, self.resource_version)


class OwnWrites:
    """The last write of each request to each object, until the caches have seen it."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic, patience: float = PATIENCE) -> None:
        self._clock = clock
        self._patience = patience
        self._written: dict[Request, dict[tuple[Cache, str], Written]] = {}

    def wrote(self, request: Request, cache: Cache, key: str, resource_version: int) -> None:
        """Remember a write made for `request`."""
        written = Written(cache, key, resource_version, self._clock())
        self._written.setdefault(request, {})[cache, key] = written

    def unseen(self, request: Request) -> list[Written]:
        """Return the writes for `request` that the caches do not know of yet, and forget the others."""
        unseen = {place: each for place, each in self._written.pop(request, {}).items() if not each.is_seen}
        if unseen:
            self._written[request] = unseen
        return list(unseen.values())

    def wait(self, request: Request) -> float:
        """Return how long `request` should still wait for the caches: 0 once they know, or patience is at its end."""
        unseen = self.unseen(request)
        if not unseen:
            return 0.0
        return max(0.0, max(each.at for each in unseen) + self._patience - self._clock())

    def forget(self, request: Request) -> None:
        """Forget all writes for `request`: what they wrote has been read from the API server."""
        self._written.pop(request, None)
