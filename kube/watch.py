"""Keeps a Store right by list and watch, for ever, whatever the API server and the network do."""

import asyncio
import logging
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal

from kube.client import Client, selectors
from kube.errors import ApiError, BadRequest, Gone, Invalid, ServerError, Unreachable, error_for
from kube.resource import Resource
from kube.store import Entry, Store
from kube.transport import decode

LOG = logging.getLogger("gatewright.kube.watch")

WATCH_SECONDS = (290, 580)  # how long a watch is asked to last; random, so that not all end at once
IDLE_MARGIN = 5.0  # how long after its end a silent watch is given up
INITIAL_IDLE = 30.0  # a server that is silent so long before the first objects are complete does not know watch-list
SHORT = 1.0  # a watch that ends sooner, without an event, is a failure
SILENT = 60.0  # a watch without even a bookmark for so long proves nothing: list anew
INITIAL_EVENTS_END = "k8s.io/initial-events-end"


@dataclass(frozen=True, slots=True)
class Change:
    """One difference between what a Store knew and what it knows now."""

    kind: Literal["added", "modified", "deleted"]
    key: str
    old: Entry | None
    new: Entry | None
    initial: bool
    """Whether it was found while listing, rather than just happened."""


class Backoff:
    """How long to wait after the n-th failure in a row: 0.8 s, doubling; two quiet minutes forget it all."""

    FIRST, LONGEST, FORGET = 0.8, 30.0, 120.0
    LONGEST_UNREACHABLE = 5.0  # nobody is there to be spared, and the first to see the server back is the best

    def __init__(self, monotonic: Callable[[], float], uniform: Callable[[float, float], float]) -> None:
        self._monotonic = monotonic
        self._uniform = uniform
        self._failures = 0
        self._last = float("-inf")

    def after(self, error: ApiError) -> float:
        """Return the seconds to wait after this failure; what the server asked for counts, up to a minute."""
        now = self._monotonic()
        if now - self._last > self.FORGET:
            self._failures = 0
        self._last = now
        longest = self.LONGEST_UNREACHABLE if isinstance(error, Unreachable) else self.LONGEST
        delay = min(longest, self.FIRST * 2 ** min(self._failures, 10))
        self._failures += 1
        asked = min(error.retry_after or 0.0, 60.0)
        return max(asked, self._uniform(delay / 2, delay))


class Watch:
    """One resource, one namespace or all, one label selector: its Store, and those who want to hear of changes."""

    def __init__(
        self,
        client: Client,
        resource: Resource,
        store: Store,
        *,
        namespace: str | None = None,
        labels: str | None = None,
        fields: str | None = None,
        metadata_only: bool = False,
        monotonic: Callable[[], float] = time.monotonic,
        uniform: Callable[[float, float], float] = random.uniform,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.resource = resource
        self.store = store
        self.last_heard: float | None = None
        """When (monotonic) the server last said something, if only that nothing changed."""
        self.problem: str | None = None
        """Why nothing is heard at present; None while all is well."""

    def subscribe(self, callback: Callable[[Change], None]) -> None:
        """Call `callback` with each change, after the store has it."""

    async def run(self) -> None:
        """Follow the server until cancelled; failures are logged, waited out and tried again."""
