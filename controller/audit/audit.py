"""The audit: one pass lists, judges and reports what stands in the cluster; the leader repeats it."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Collection
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from prometheus_client import CollectorRegistry

from controller.audit.inventory import resource_of, take_inventory
from controller.audit.judge import Judge, Judged
from controller.audit.listing import Lister, RateLimit, rate_limit
from controller.audit.metrics import AuditMetrics
from controller.audit.reports import KINDS, SELECTOR, Changes, Format, Stored, changes, stored_of, with_first_seen
from controller.runtime.controller import Controller
from controller.runtime.metrics import Metrics
from controller.runtime.types import Request, Result
from kube.client import Client
from kube.errors import ApiError, NotFound
from kube.resource import Resource
from webhook.engine import Engine
from webhook.engine.kinds import Kind

FIELD_MANAGER = "gatewright-audit"
REQUEST = Request(None, "cluster")
SOON = timedelta(seconds=15)  # at least, between the starts of two passes
YIELD_EVERY = 20  # objects judged before other tasks of the process run

log = logging.getLogger("gatewright.audit")


@dataclass(frozen=True, slots=True)
class Totals:
    """The last finished pass: how many objects were judged, and by policy object (violations, objects with one)."""

    objects: int
    policies: dict[str, tuple[int, int]]

    def status(self, policy: str) -> dict[str, int]:
        """Return the fields of a policy object's status; the key of a namespaced one is `namespace/name`."""
        violations, objects = self.policies.get(policy, (0, 0))
        return {"violations": violations, "wouldDeny": objects, "auditedObjects": self.objects}


class Audit:
    """Audits the cluster every `interval`, and soon after other policies are in force."""

    def __init__(
        self,
        client: Client,
        engine: Callable[[], Engine | None],
        registry: CollectorRegistry,
        *,
        interval: timedelta,
        qps: float,
        format: Format = "openreports",
        namespaces: Collection[str] = (),
        excluded_namespaces: Collection[str] = (),
        planned: Collection[tuple[str, str]] = (),
        optional: Collection[Resource] = (),
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Take the engine in force as a function (None until it is known), and what `gatewright controller` sets."""
        self._client, self._engine, self._now = client, engine, now
        self._interval, self._qps, self._format = interval, qps, format
        self._namespaces, self._excluded = tuple(namespaces), frozenset(excluded_namespaces)
        self._planned, self._optional = planned, tuple(optional)
        self._metrics = AuditMetrics(registry)
        self.on_finished: Callable[[], None] = lambda: None
        self._limit: RateLimit | None = None
        self._started: datetime | None = None
        self.totals: Totals | None = None

    def controller(self, metrics: Metrics) -> Controller:
        """Return the controller that runs it; adding REQUEST asks for a pass soon."""
        controller = Controller("audit", reconcile=self.reconcile, metrics=metrics, workers=1)
        controller.add(REQUEST)
        return controller

    async def reconcile(self, _: Request) -> Result:
        """Run one pass, unless the last one has only just begun. ApiError where nothing can be read or written."""
        engine, now = self._engine(), self._now()
        if engine is None:
            return Result(SOON)
        if self._started is not None and now - self._started < SOON:
            return Result(self._started + SOON - now)
        self._started = now
        self._limit = self._limit or rate_limit(self._qps)
        began = time.monotonic()
        lister = Lister(self._client, self._limit, self._namespaces)
        judged, objects, unread = await self._judge(engine, lister, now)
        try:
            existing = [each async for each in self._reports(lister)]
        except NotFound:
            log.warning("no audit reports are written: the CRDs of %s are not installed", self._format)
            planned = Changes((), ())
        else:
            planned = changes(judged, existing, self._format, now, unread)
            await self._write(planned)
        self._finish(judged, objects, time.monotonic() - began, complete=not unread)
        log.info(
            "audit finished",
            extra={
                "fields": {
                    "objects": objects,
                    "violating": len(judged),
                    "applied": len(planned.apply),
                    "deleted": len(planned.delete),
                    "seconds": round(time.monotonic() - began, 1),
                }
            },
        )
        return Result(self._interval)

    async def _judge(self, engine: Engine, lister: Lister, now: datetime) -> tuple[list[Judged], int, frozenset[str]]:
        """Return the objects with violations, how many were judged, and the kinds that could not be listed."""
        judge = Judge(engine, self._planned)
        inventory = await take_inventory(lister, engine)
        served = frozenset([(each.group, each.plural) for each in self._optional if await self._client.serves(each)])
        found: dict[str, Judged] = {}
        seen: set[str] = set()
        unread: set[str] = set()
        for kind in judge.kinds:
            try:
                async for object in lister.objects(resource_of(kind)):
                    uid, namespace = object["metadata"]["uid"], object["metadata"].get("namespace", "")
                    if uid in seen or namespace in self._excluded or judge.is_covered_by_owner(kind, object):
                        continue
                    seen.add(uid)
                    if (result := judge(kind, object, inventory.about(namespace, now, served))) is not None:
                        found[uid] = result
                    if len(seen) % YIELD_EVERY == 0:
                        await asyncio.sleep(0)
            except NotFound:
                continue  # its CRD is not installed
            except ApiError as error:
                unread.add(_label(kind))
                log.warning("%s cannot be audited: %s", kind.plural, error)
        return list(found.values()), len(seen), frozenset(unread)

    async def _reports(self, lister: Lister) -> AsyncIterator[Stored]:
        for resource in KINDS[self._format]:
            async for each in lister.objects(resource, metadata_only=True, labels=SELECTOR):
                yield stored_of(each["metadata"])

    async def _write(self, planned: Changes) -> None:
        namespaced, cluster = KINDS[self._format]
        assert self._limit is not None
        for report in planned.apply:
            metadata = report["metadata"]
            resource = namespaced if "namespace" in metadata else cluster
            await self._limit.wait()
            try:
                is_there = metadata["name"] in planned.there
                old = (
                    await self._client.get(resource, metadata["name"], metadata.get("namespace")) if is_there else None
                )
                await self._client.apply(
                    resource, with_first_seen(report, old), field_manager=FIELD_MANAGER, force=True
                )
            except NotFound:
                continue  # with its object, or its namespace
        for each in planned.delete:
            resource = namespaced if each.namespace else cluster
            await self._limit.wait()
            try:
                await self._client.delete(resource, each.name, each.namespace or None)
            except NotFound:
                continue  # with the object that owned it

    def _finish(self, judged: list[Judged], objects: int, seconds: float, *, complete: bool) -> None:
        policies: dict[str, tuple[int, int]] = {}
        for each in judged:
            for policy in {finding.policy for finding in each.findings}:
                violations, violating = policies.get(policy, (0, 0))
                number = sum(finding.policy == policy for finding in each.findings)
                policies[policy] = violations + number, violating + 1
        self.totals = Totals(objects, policies)
        self._metrics.finished(judged, objects, seconds)
        if complete:
            self._metrics.succeeded(self._now().timestamp())
        self.on_finished()


def _label(kind: Kind) -> str:
    return f"{kind.kind}.{kind.group}".rstrip(".")
