"""Other installations that reconcile the same kinds and namespaces: the oldest one writes.

Each leader's Lease has a label, and annotations with its kinds and namespaces. A leader lists these
Leases; for what an older installation reconciles, it writes nothing until that one ends.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import NamedTuple, Never

from prometheus_client import Gauge

from controller.runtime.events import EventRecorder
from controller.runtime.leader import LEASE, LeaseSettings, holder_of
from controller.runtime.plan import Event
from kube.client import Client
from kube.errors import ApiError, Forbidden
from kube.resource import JsonObject, Resource, definition_of

LOG = logging.getLogger("gatewright.controller")

LABEL = "gatewright.io/controller"
KINDS = "gatewright.io/kinds"
NAMESPACES = "gatewright.io/namespaces"

INTERVAL = 30.0  # seconds between two lists
LIST_TIMEOUT = 10.0  # seconds
RETRY_INTERVAL = 2.0  # seconds until the next try of a list that failed
# Seconds after which a Lease that was not renewed has no holder any more, by the clocks of two
# machines. If they differ by more, the next list shows that it is renewed.
ABANDONED_AFTER = 300.0


class Scope(NamedTuple):
    """What an installation reconciles: kinds as `plural.group`; no namespaces: all."""

    kinds: frozenset[str]
    namespaces: frozenset[str]

    @classmethod
    def of(cls, lease: JsonObject) -> "Scope":
        """Return the scope that a Lease declares."""
        annotations = lease["metadata"].get("annotations") or {}
        kinds, namespaces = (annotations.get(each, "").split(",") for each in (KINDS, NAMESPACES))
        return cls(frozenset(filter(None, kinds)), frozenset(filter(None, namespaces)))

    @property
    def metadata(self) -> JsonObject:
        """The labels and annotations of a Lease with this scope."""
        kinds, namespaces = (",".join(sorted(each)) for each in self)
        return {"labels": {LABEL: "true"}, "annotations": {KINDS: kinds, NAMESPACES: namespaces}}

    def includes(self, kind: str, namespace: str | None) -> bool:
        """Return whether objects of a kind in a namespace belong to the scope."""
        everywhere = not self.namespaces or namespace is None
        return kind in self.kinds and (everywhere or namespace in self.namespaces)

    def overlap(self, other: "Scope") -> "Scope | None":
        """Return what both reconcile."""
        kinds = self.kinds & other.kinds
        if not kinds:
            return None
        if not self.namespaces or not other.namespaces:
            return Scope(kinds, self.namespaces | other.namespaces)
        both = self.namespaces & other.namespaces
        return Scope(kinds, both) if both else None

    def __str__(self) -> str:
        """Return the text for a message."""
        where = f"namespace {', '.join(sorted(self.namespaces))}"
        return (
            f"{', '.join(sorted(self.kinds))} in {where if self.namespaces else 'all namespaces'}"
        )


class Installations:
    """The other installations with a part of this one's scope, as of the last list."""

    def __init__(
        self,
        client: Client,
        lease: LeaseSettings,
        recorder: EventRecorder,
        gauge: Gauge,
        *,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Take the Lease of this installation; `scope` must be set before `run`."""
        self.scope = Scope(frozenset(), frozenset())
        self.known = asyncio.Event()
        """Set once the others are known, or cannot be known."""
        self.on_change: list[Callable[[], None]] = []
        """Called when this installation may reconcile other objects than before."""
        self._client = client
        self._lease = lease
        self._recorder = recorder
        self._gauge = gauge
        self._clock = clock
        self._now = now
        self._renewals: dict[str, tuple[object, float]] = {}
        self._older: dict[str, Scope] = {}
        self._others: dict[str, Scope] = {}

    def precedes(self, resource: Resource, namespace: str | None) -> bool:
        """Return whether an older installation reconciles these objects, so this one must not."""
        kind = definition_of(resource)
        return any(scope.includes(kind, namespace) for scope in self._older.values())

    def other(self, resource: Resource, namespace: str | None) -> str:
        """Return the Lease of another installation that reconciles these objects, or nothing."""
        kind = definition_of(resource)
        leases = (lease for lease, each in self._others.items() if each.includes(kind, namespace))
        return next(leases, "")

    async def run(self) -> Never:
        """List the Leases of all installations every 30 s."""
        is_forbidden = False
        while True:
            try:
                async with asyncio.timeout(LIST_TIMEOUT):
                    listed = self._client.list(LEASE, labels=f"{LABEL}=true")
                    leases = [each async for each in listed]
            except (ApiError, TimeoutError) as error:
                if not isinstance(error, Forbidden):
                    problem = str(error) or "no answer in time"
                    LOG.warning("cannot list the Leases of other installations: %s", problem)
                    await asyncio.sleep(RETRY_INTERVAL)
                    continue
                if not is_forbidden:
                    LOG.warning("other installations are not detected: %s", error)
                is_forbidden, leases = True, []
            self.look(leases)
            self.known.set()
            await asyncio.sleep(self._pause(leases))

    def look(self, leases: Iterable[JsonObject]) -> None:
        """Compare the Leases of all installations with this one's."""
        by_name = {title_of(each): each for each in leases}
        own = by_name.pop(f"{self._lease.namespace}/{self._lease.name}", None)
        held = {name: each for name, each in by_name.items() if self._is_held(each)}
        overlaps = {name: self.scope.overlap(Scope.of(each)) for name, each in held.items()}
        self._others = {name: scope for name, scope in overlaps.items() if scope is not None}
        older = {
            name: scope
            for name, scope in self._others.items()
            if own is None or age_of(held[name]) < age_of(own)
        }
        before, self._older = self._older, older
        if older == before:
            return
        for name, scope in older.items():
            if before.get(name) != scope:
                self._report(name, holder_of(held[name]), scope, own)
        for name in before.keys() - older.keys():
            self._gauge.remove(name)
            LOG.info("another installation has ended; its objects are reconciled: Lease %s", name)
        for notify in self.on_change:
            notify()

    def _report(self, name: str, holder: str, scope: Scope, own: JsonObject | None) -> None:
        """Tell that an older installation reconciles a part of this one's scope."""
        self._gauge.labels(name).set(1)
        note = (
            f"another Gatewright controller, Lease {name}, reconciles {scope}; it was installed "
            "first, so this one does not write these objects. Uninstall one of them, or give each "
            "its own --kinds or --namespaces"
        )
        LOG.warning(note, extra={"fields": {"holder": holder}})
        if own is not None:
            self._recorder.record(
                {"apiVersion": LEASE.api_version, "kind": LEASE.kind, **own},
                Event("AnotherController", note, "Warning"),
            )

    def _is_held(self, lease: JsonObject) -> bool:
        """Return whether a Lease has a holder that renews it, as far as was observed."""
        spec = lease.get("spec") or {}
        if not holder_of(lease):
            return False
        uid, renewal = lease["metadata"]["uid"], spec.get("renewTime")
        last = self._renewals.get(uid)
        if last is None and renewal is not None:
            age = self._now() - datetime.fromisoformat(renewal)
            if age.total_seconds() > ABANDONED_AFTER:
                return False
        if last is None or last[0] != renewal:
            self._renewals[uid] = last = renewal, self._clock()
        return self._clock() - last[1] <= (spec.get("leaseDurationSeconds") or self._lease.duration)

    def _pause(self, leases: Iterable[JsonObject]) -> float:
        """Return the seconds until the next list: short while it decides what is reconciled."""
        durations = [
            (lease.get("spec") or {}).get("leaseDurationSeconds") or self._lease.duration
            for lease in leases
            if title_of(lease) in self._older
        ]
        return min([INTERVAL, *(duration + 1.0 for duration in durations)])


def title_of(lease: JsonObject) -> str:
    """Return the namespace and the name of a Lease."""
    return f"{lease['metadata']['namespace']}/{lease['metadata']['name']}"


def age_of(lease: JsonObject) -> tuple[str, str]:
    """Return the key by which Leases are ordered: the oldest first."""
    return lease["metadata"]["creationTimestamp"], lease["metadata"]["uid"]
