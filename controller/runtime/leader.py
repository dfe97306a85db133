"""Leader election on a Lease: at most one process writes."""

import asyncio
import logging
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Never

from controller.runtime.lease import LEASE, Object, claimed, duration_of, holder_of, new, released
from controller.runtime.result import RetryableError
from kube.client import Client
from kube.errors import AlreadyExists, ApiError, Conflict, NotFound

LOG = logging.getLogger("gatewright.leader")

JITTER = 1.2


@dataclass(frozen=True, slots=True)
class LeaseSettings:
    """Which lease it is and how long it lasts, in seconds."""

    namespace: str
    name: str
    duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0

    def __post_init__(self) -> None:
        """Refuse times at which two processes could lead."""
        if not self.duration > self.renew_deadline > self.retry_period * JITTER > 0:
            raise ValueError(
                f"leader election: leaseDuration ({self.duration:g} s) must exceed renewDeadline "
                f"({self.renew_deadline:g} s), and that {JITTER} times retryPeriod ({self.retry_period:g} s)"
            )


class NotLeadingError(RetryableError):
    """A write was about to be made, but this process does not lead, or no longer knows that it does."""


class LeadershipLostError(Exception):
    """The lease could not be renewed in time, or somebody else has it: the process must end."""


class Election:
    """One process's part in the election.

    Times are taken from the monotonic clock and before each request, so that we stop believing that we lead before
    anybody else may begin to; other people's clocks are never compared with ours.
    """

    def __init__(
        self,
        client: Client,
        settings: LeaseSettings,
        identity: str,
        *,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        uniform: Callable[[float, float], float] = random.uniform,
        on_change: Callable[[bool], None] = lambda leads: None,
    ) -> None:
        """Take a client of its own: the one that everything else writes with asks `check` before each write."""
        self._client = client
        self._settings = settings
        self._identity = identity
        self._clock = clock
        self._now = now
        self._uniform = uniform
        self._on_change = on_change
        self._lease: Object | None = None
        self._observed_at = 0.0
        self._is_missing = False
        self._renewed_at: float | None = None
        self.last_heard: float | None = None
        """When (monotonic) the API server last answered about the lease."""
        self.leading = asyncio.Event()

    @property
    def holder(self) -> str:
        """Who leads, as far as we know; empty for nobody."""
        return holder_of(self._lease) if self._lease else ""

    def check(self) -> None:
        """Raise `NotLeadingError` unless we surely lead: called before every write."""
        if not self.leading.is_set() or self._renewed_at is None:
            raise NotLeadingError("this process does not lead")
        if self._clock() >= self._renewed_at + self._settings.renew_deadline:
            raise NotLeadingError("the lease was not renewed in time")

    async def campaign(self) -> None:
        """Wait until we lead."""
        while True:
            if await self._try():
                break
            await asyncio.sleep(self.pause())
        self.leading.set()
        self._on_change(True)
        LOG.info("leading", extra={"fields": {"lease": self._settings.name, "identity": self._identity}})

    def pause(self) -> float:
        """Return in how many seconds to try again: a standby takes over no later than it must, and in that moment."""
        pause = self._settings.retry_period * self._uniform(1.0 / JITTER, 1.0)
        if self._lease is None or not self._is_held_by_another(self._lease):
            return pause
        return min(pause, self._observed_at + duration_of(self._lease, self._settings.duration) - self._clock())

    async def hold(self) -> Never:
        """Renew the lease until that fails for too long; raises `LeadershipLostError`."""
        try:
            while True:
                await asyncio.sleep(self._settings.retry_period)
                left = (self._renewed_at or 0.0) + self._settings.renew_deadline - self._clock()
                try:
                    async with asyncio.timeout(max(left, 0.0)):
                        await self._renew()
                except TimeoutError:
                    raise LeadershipLostError(f"the lease {self._settings.name} was not renewed in time") from None
        finally:
            self._stop_leading()

    async def release(self) -> None:
        """Let others lead at once; called when nothing is written any more."""
        if self.holder != self._identity or self._lease is None:
            return
        self._stop_leading()
        try:
            async with asyncio.timeout(self._request_seconds):
                self._lease = await self._release(self._lease)
        except (ApiError, TimeoutError) as error:
            LOG.warning("the lease was not released: %s", error or "no answer in time")

    async def _release(self, lease: Object) -> Object:
        try:
            return await self._client.replace(LEASE, released(lease, self._now()))
        except Conflict:  # a renewal was under way when we were told to end
            lease = await self._client.get(LEASE, self._settings.name, self._settings.namespace)
            if holder_of(lease) != self._identity:
                return lease
            return await self._client.replace(LEASE, released(lease, self._now()))

    async def _renew(self) -> None:
        """Renew once, however many tries that takes; returns when it is done."""
        while not await self._try():
            if self.holder not in ("", self._identity):
                raise LeadershipLostError(f"{self.holder} leads now")
            await asyncio.sleep(self._settings.retry_period)

    async def _try(self) -> bool:
        """Take or renew the lease if that is ours to do; failures are logged and count as no."""
        started = self._clock()
        try:
            async with asyncio.timeout(self._request_seconds):
                won = await self._take_or_renew()
        except (ApiError, TimeoutError) as error:
            LOG.warning("leader election: %s", error or "no answer in time")
            return False
        self.last_heard = self._clock()
        if won:
            self._renewed_at = started
        return won

    async def _take_or_renew(self) -> bool:
        if self.leading.is_set() and self._lease is not None and self.holder == self._identity:
            try:
                self._observe(await self._client.replace(LEASE, self._claim(self._lease)))
            except (Conflict, NotFound):
                LOG.info("the lease changed under us: reading it again")
            else:
                return True
        try:
            self._observe(await self._client.get(LEASE, self._settings.name, self._settings.namespace))
        except NotFound:
            self._miss()
        if self._lease is not None and self._is_held_by_another(self._lease):
            return False
        try:
            if self._lease is None:
                self._observe(await self._client.create(LEASE, self._claim(None)))
            else:
                self._observe(await self._client.replace(LEASE, self._claim(self._lease)))
        except (Conflict, AlreadyExists):
            return False  # somebody was faster
        return True

    def _is_held_by_another(self, lease: Object) -> bool:
        """Tell whether somebody else has the lease, and had it for less than its duration since it last changed."""
        if self.holder in ("", self._identity):
            return False
        return self._clock() < self._observed_at + duration_of(lease, self._settings.duration)

    def _miss(self) -> None:
        """See that the lease is gone: if somebody deleted it, its holder leads on for now and makes it again."""
        if not self._is_missing:
            self._is_missing, self._observed_at = True, self._clock()
        if self._lease is not None and not self._is_held_by_another(self._lease):
            self._lease = None

    def _observe(self, lease: Object) -> None:
        self._is_missing = False
        if self._lease is None or lease.get("spec") != self._lease.get("spec"):
            self._observed_at = self._clock()
        self._lease = lease

    def _stop_leading(self) -> None:
        if self.leading.is_set():
            self.leading.clear()
            self._on_change(False)

    def _claim(self, lease: Object | None) -> Object:
        settings = self._settings
        named = {"name": settings.name, "namespace": settings.namespace}
        return claimed(lease or new(named), self._identity, settings.duration, self._now())

    @property
    def _request_seconds(self) -> float:
        return max(1.0, self._settings.renew_deadline / 2)
