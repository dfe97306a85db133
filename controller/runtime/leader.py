"""Leader election on a Lease, and the gate that each write passes: at most one process writes."""

import asyncio
import logging
import math
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Never

from controller.runtime.types import RetryableError
from kube.client import Client
from kube.errors import AlreadyExists, ApiError, Conflict, NotFound
from kube.resource import JsonObject, Resource

LOG = logging.getLogger("gatewright.leader")

NO_ANSWER = "no answer in time"
STOP = 1.0  # seconds; a process on a busy machine is late by less

LEASE = Resource("coordination.k8s.io", "v1", "leases", "Lease")


@dataclass(frozen=True, slots=True)
class LeaseSettings:
    """The name of the Lease, and its times in seconds."""

    namespace: str
    name: str
    duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0

    def __post_init__(self) -> None:
        """Reject times with which two processes could lead."""
        if not self.duration > self.renew_deadline > self.retry_period > 0:
            raise ValueError(
                f"leader election: leaseDuration ({self.duration:g} s) must exceed renewDeadline "
                f"({self.renew_deadline:g} s), and that retryPeriod ({self.retry_period:g} s)"
            )


class NotLeadingError(RetryableError):
    """A process that is not the leader, or no longer, was about to send a write."""


class LeadershipLostError(Exception):
    """The lease was not renewed in time, or another process holds it: this process must end."""


class Election:
    """One process's part in the election.

    Times are read from the monotonic clock before each request, so that this process stops writing
    before another one may start. Clocks of other processes are never compared with it.
    """

    def __init__(
        self,
        client: Client,
        settings: LeaseSettings,
        identity: str,
        *,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Take a client for the Lease only; every other client calls `check` before each write."""
        self.client = client
        self._settings = settings
        self._identity = identity
        self._clock = clock
        self._now = now
        self._request_timeout = max(1.0, settings.renew_deadline / 2)
        self._lease: JsonObject = {
            "metadata": {"name": settings.name, "namespace": settings.namespace}
        }
        self.metadata: JsonObject = {}
        """Labels and annotations that the Lease has while this process holds it."""
        self._observed_at = 0.0
        self._renewed_at = float("-inf")
        self._failure = ""  # why the lease was not renewed the last time; empty if it was
        self.last_heard: float | None = None
        """When (monotonic) the API server last answered about the lease."""
        self.leading = asyncio.Event()
        self.waited = False
        """Whether another process led, or may have led, since `campaign` was called."""

    @property
    def lease(self) -> JsonObject | None:
        """The Lease as it was last read or written, to record events about; None before that."""
        if "uid" not in self._lease["metadata"]:
            return None
        return {**self._lease, "apiVersion": LEASE.api_version, "kind": LEASE.kind}

    @property
    def holder(self) -> str:
        """The identity of the leader, as far as is known; empty if there is none."""
        return holder_of(self._lease)

    def check(self) -> None:
        """Raise `NotLeadingError` unless this process leads for certain.

        Called before every write.
        """
        if not self.leading.is_set():
            raise NotLeadingError("this process does not lead")
        if self._clock() >= self._renewed_at + self._settings.renew_deadline:
            raise NotLeadingError("the lease was not renewed in time")

    async def campaign(self) -> None:
        """Wait until this process leads."""
        while not await self._try():
            self.waited = True
            await asyncio.sleep(self.pause())
        self.leading.set()
        LOG.info(
            "leading", extra={"fields": {"lease": self._settings.name, "identity": self._identity}}
        )

    def pause(self) -> float:
        """Return the seconds until the next try, at most until another process's lease ends."""
        pause = self._settings.retry_period
        return min(pause, self._seconds_left()) if self._is_held_by_another() else pause

    async def hold(self) -> Never:
        """Renew the lease until that fails for too long; raises `LeadershipLostError`."""
        try:
            while True:
                started = self._clock()
                await asyncio.sleep(self._settings.retry_period)
                self._check_for_stop(started, self._settings.retry_period)
                left = self._renewed_at + self._settings.renew_deadline - self._clock()
                try:
                    async with asyncio.timeout(max(left, 0.0)):
                        while not await self._try():
                            if self.holder not in ("", self._identity):
                                raise LeadershipLostError(f"{self.holder} leads now")
                            await asyncio.sleep(self._settings.retry_period)
                except TimeoutError:
                    raise LeadershipLostError(
                        f"the lease {self._settings.name} was not renewed in time: "
                        f"{self._failure or NO_ANSWER}"
                    ) from None
        finally:
            self.leading.clear()

    async def release(self) -> None:
        """Release the Lease, so that another process leads at once. Called after the last write."""
        if self.holder != self._identity:
            return
        self.leading.clear()
        try:
            async with asyncio.timeout(self._request_timeout):
                lease = await self.client.get(LEASE, self._settings.name, self._settings.namespace)
                if holder_of(lease) == self._identity:
                    await self.client.replace(LEASE, release_lease(lease, self._now()))
        except (ApiError, TimeoutError) as error:
            LOG.warning("the lease was not released: %s", error or NO_ANSWER)

    async def _try(self) -> bool:
        """Take or renew the lease if possible; return whether that succeeded.

        Failures are logged.
        """
        started = self._clock()
        try:
            async with asyncio.timeout(self._request_timeout):
                won = await self._take_or_renew()
        except (ApiError, TimeoutError) as error:
            if not self._check_for_stop(started, self._request_timeout):
                self._fail(str(error) or NO_ANSWER)
            return False
        self.last_heard = self._clock()
        if won:
            self._failure = ""
            self._renewed_at = started
        return won

    def _check_for_stop(self, started: float, seconds: float) -> bool:
        """Return whether this process stopped for longer than STOP in what takes at most `seconds`.

        Then it was suspended, had no processor, or something kept its event loop: not the API
        server is the cause.
        """
        stopped = self._clock() - started - seconds
        if stopped > STOP:
            self._fail(f"this process did not run for {stopped:.0f} s")
        return stopped > STOP

    def _fail(self, failure: str) -> None:
        self._failure = failure
        LOG.warning("leader election: %s", failure)

    async def _take_or_renew(self) -> bool:
        if self.leading.is_set() and self.holder == self._identity:
            with suppress(Conflict, NotFound):  # it has changed and is read again
                await self._claim()
                return True
        try:
            self._observe(
                await self.client.get(LEASE, self._settings.name, self._settings.namespace)
            )
        except NotFound:
            self._observe(as_existing_lease(self._lease))
        if self._is_held_by_another():
            return False
        try:
            await self._claim()
        except (Conflict, AlreadyExists):
            return False  # another process was faster
        return True

    def _is_held_by_another(self) -> bool:
        """Return whether another process holds the lease, and it has not expired."""
        return self.holder not in ("", self._identity) and self._seconds_left() > 0

    def _seconds_left(self) -> float:
        """Return for how many seconds the lease is respected, as it was observed last."""
        seconds = (self._lease.get("spec") or {}).get(
            "leaseDurationSeconds"
        ) or self._settings.duration
        return self._observed_at + float(seconds) - self._clock()

    def _observe(self, lease: JsonObject) -> None:
        if lease.get("spec") != self._lease.get("spec"):
            self._observed_at = self._clock()
        self._lease = lease

    async def _claim(self) -> None:
        write = (
            self.client.replace
            if "resourceVersion" in self._lease["metadata"]
            else self.client.create
        )
        claim = claim_lease(self._lease, self._identity, self._settings.duration, self._now())
        metadata = claim["metadata"]
        for field, values in self.metadata.items():
            metadata = {**metadata, field: {**(metadata.get(field) or {}), **values}}
        self._observe(await write(LEASE, {**claim, "metadata": metadata}))


def holder_of(lease: JsonObject) -> str:
    """Return the identity of a Lease's holder; empty if there is none."""
    return str((lease.get("spec") or {}).get("holderIdentity") or "")


def as_existing_lease(lease: JsonObject) -> JsonObject:
    """Return a deleted Lease as if it existed, since its holder may still be writing."""
    metadata, spec = lease["metadata"], lease.get("spec") or {}
    kept = {key: spec[key] for key in ("holderIdentity", "leaseDurationSeconds") if key in spec}
    return {
        "metadata": {"name": metadata["name"], "namespace": metadata["namespace"]},
        "spec": kept,
    }


def claim_lease(lease: JsonObject, identity: str, duration: float, now: datetime) -> JsonObject:
    """Return a Lease held by `identity`: acquired now, or renewed if it held it already."""
    old = lease.get("spec") or {}
    is_renewal = holder_of(lease) == identity
    is_transition = bool(old) and not is_renewal
    spec = {
        **old,
        "holderIdentity": identity,
        "leaseDurationSeconds": math.ceil(duration),
        "acquireTime": (is_renewal and old.get("acquireTime")) or micro_time(now),
        "renewTime": micro_time(now),
        "leaseTransitions": (old.get("leaseTransitions") or 0) + is_transition,
    }
    return {**lease, "spec": spec}


def release_lease(lease: JsonObject, now: datetime) -> JsonObject:
    """Return a Lease that any process may take."""
    ended = {"holderIdentity": None, "leaseDurationSeconds": 1, "renewTime": micro_time(now)}
    return {**lease, "spec": lease["spec"] | ended}


def micro_time(moment: datetime) -> str:
    """Return a moment as the API's MicroTime: UTC, microseconds."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
