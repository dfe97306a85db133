"""Readiness of a controller process, whether it leads or not."""

import time
from collections.abc import Callable, Iterator

from controller.runtime.cache import Caches
from controller.runtime.leader import Election

MAX_SILENCE = 150.0  # seconds without data from the API server


def unready(
    caches: Caches, election: Election | None = None, *, clock: Callable[[], float] = time.monotonic
) -> str | None:
    """Return the caches that are not synced, and the silent watches and Lease, as text.

    None if there are no problems.
    """
    return "; ".join(_faults(caches, election, clock())) or None


def _faults(caches: Caches, election: Election | None, now: float) -> Iterator[str]:
    for cache in caches:
        if cache.is_synced and not cache.is_served:
            continue  # the API server does not have the resource
        for watch in cache.watches:
            why = f" ({watch.problem})" if watch.problem else ""
            if not watch.store.synced.is_set():
                yield f"{cache.resource.plural}: not synced{why}"
            elif (silence := now - (watch.last_heard or now)) > MAX_SILENCE:
                yield f"{cache.resource.plural}: nothing heard for {silence:.0f} s{why}"
    if election is not None and (silence := now - (election.last_heard or now)) > MAX_SILENCE:
        yield f"lease: nothing heard for {silence:.0f} s"
