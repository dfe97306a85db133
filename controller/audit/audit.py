"""The audit: one pass lists, judges and reports what stands in the cluster; the leader repeats it."""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Self

from prometheus_client import CollectorRegistry

from controller.audit.inventory import take_inventory
from controller.audit.judge import Judge, Judged
from controller.audit.kubernetes_policies import VALIDATING, joined, kubernetes_policies
from controller.audit.listing import Lister, Object, RateLimit
from controller.audit.metrics import AuditMetrics
from controller.audit.objects import objects, served
from controller.audit.reports import (
    KINDS,
    MAX_REPORTS,
    SELECTOR,
    Changes,
    Format,
    Stored,
    changes,
    label,
    stored_of,
    with_first_seen,
)
from controller.audit.scope import Scope
from controller.runtime.cache import Caches
from controller.runtime.controller import Controller
from controller.runtime.metrics import Metrics
from controller.runtime.sources import always, spec_changed
from controller.runtime.types import Request, Result
from kube.client import Client
from kube.errors import ApiError, Forbidden, NotFound
from kube.resource import Resource
from webhook.engine import BoundPolicy, Engine
from webhook.engine.kinds import Kind

FIELD_MANAGER = "gatewright-audit"
REQUEST = Request(None, "cluster")
FIGURES = ("violations", "wouldDeny", "auditedObjects")  # of an audit, in the status of a policy object
SOON = timedelta(seconds=15)  # at least, between the starts of two passes
TIMEOUT = 3600.0  # seconds: 5,000 reports take minutes at the default rate
YIELD_EVERY = 20  # objects judged before other tasks of the process run

log = logging.getLogger("gatewright.audit")


@dataclass(frozen=True, slots=True)
class Totals:
    """The last finished pass: how many objects were judged, and by policy object (violations, objects with one)."""

    objects: int
    policies: Mapping[str, tuple[int, int]]

    @classmethod
    def of(cls, engine: Engine, found: Iterable[Judged], objects: int) -> Self:
        """Return the totals of a pass that judged that many `objects` by an engine."""
        violations, violating = Counter[str](), Counter[str]()
        for each in found:
            number = Counter(finding.policy for finding in each.findings)
            violations.update(number)
            violating.update(number.keys())
        titles = {*(each.title for each in engine.policies), *violations}
        return cls(objects, {title: (violations[title], violating[title]) for title in titles})

    def status(self, policy: str) -> dict[str, int]:
        """Return FIGURES of a policy object's status, by its name or `namespace/name`; none where it is newer."""
        if policy not in self.policies:
            return {}
        return dict(zip(FIGURES, (*self.policies[policy], self.objects), strict=True))


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
        kubernetes: bool = False,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Take the engine in force as a function (None until it is known), and what `gatewright controller` sets.

        `kubernetes`: judge by the ValidatingAdmissionPolicies in the cluster too.
        """
        self._client, self._engine, self._now = client, engine, now
        self._interval, self._format = interval, format
        self._namespaces, self._excluded = tuple(namespaces), frozenset(excluded_namespaces)
        self._planned, self._optional, self._kubernetes = planned, tuple(optional), kubernetes
        self._metrics = AuditMetrics(registry)
        self.on_finished: Callable[[], None] = lambda: None
        self._limit = RateLimit(qps)
        self._started: datetime | None = None
        self.totals: Totals | None = None

    def controller(self, metrics: Metrics, caches: Caches) -> Controller:
        """Return the controller that runs it; adding REQUEST asks for a pass soon, as Kubernetes' policies do."""
        controller = Controller("audit", reconcile=self.reconcile, metrics=metrics, workers=1, timeout=TIMEOUT)
        for resource in VALIDATING if self._kubernetes else ():
            controller.watch(caches.of(resource, optional=True), always(REQUEST), spec_changed)
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
        began = time.monotonic()
        lister = Lister(self._client, self._limit, self._namespaces)
        if self._kubernetes:
            engine = joined(engine, await self._kubernetes_policies(lister))
        found, objects, unread = await self._judge(engine, lister, now)
        self.totals = Totals.of(engine, found, objects)
        self._metrics.judged(found, objects)
        self.on_finished()
        written = await self._report(found, lister, now, unread)
        self._metrics.finished(time.monotonic() - began, None if unread else self._now())
        log.info(
            "audit finished",
            extra={
                "fields": {
                    "objects": objects,
                    "violating": len(found),
                    "applied": len(written.apply),
                    "deleted": len(written.delete),
                    "seconds": round(time.monotonic() - began, 1),
                }
            },
        )
        return Result(self._interval)

    async def _kubernetes_policies(self, lister: Lister) -> list[BoundPolicy]:
        """Return Kubernetes' own policies in force; log those that cannot be evaluated."""
        try:
            found = await kubernetes_policies(lister)
        except Forbidden as error:
            log.warning("ValidatingAdmissionPolicies are not audited: %s", error)
            return []
        for each in found:
            for path, text in each.faults:
                log.warning("%s is not audited: %s: %s", each.document.source, path, text)
        return [policy for each in found for policy in each.policies]

    async def _judge(self, engine: Engine, lister: Lister, now: datetime) -> tuple[list[Judged], int, frozenset[str]]:
        """Return the objects with violations, how many were judged, and the kinds that could not be listed."""
        unread = set[str]()

        def refused(kind: Kind, error: ApiError) -> None:
            unread.add(label(kind.group, kind.kind))
            log.warning("%s cannot be audited: %s", kind.plural, error)

        judge, judge_owned = Judge(engine), Judge(engine.for_owned)
        scope, inventory = Scope([engine], self._excluded, self._planned), await take_inventory(lister, engine)
        apis = await served(lister, self._optional)
        found, number = list[Judged](), 0
        async for kind, object in objects(lister, scope, refused):
            number += 1
            about = inventory.about(object["metadata"].get("namespace", ""), now, apis)
            judged = (judge_owned if scope.is_owned(kind, object) else judge)(kind, object, about)
            if judged is not None:
                found.append(judged)
            if number % YIELD_EVERY == 0:
                await asyncio.sleep(0)
        return found, number, frozenset(unread)

    async def _report(self, found: list[Judged], lister: Lister, now: datetime, unread: frozenset[str]) -> Changes:
        """Bring the reports in the cluster up to date; return what was written."""
        stored = list[Stored]()
        try:
            for resource in KINDS[self._format]:
                listed = lister.objects(resource, metadata_only=True, labels=SELECTOR, first=MAX_REPORTS)
                stored += [stored_of(each["metadata"]) async for each in listed]
        except NotFound:
            log.warning("no audit reports are written: the CRDs of %s are not installed", self._format)
            return Changes((), ())
        planned = changes(found, stored, self._format, now, unread)
        there = {each.name for each in stored}
        for report in planned.apply:
            with suppress(NotFound):  # it is gone with its object, or its namespace
                await self._apply(report, is_there=report["metadata"]["name"] in there)
        for each in planned.delete:
            resource, namespace = self._resource(each.namespace), each.namespace or None
            with suppress(NotFound):
                await self._limit.send(partial(self._client.delete, resource, each.name, namespace))
        return planned

    async def _apply(self, report: Object, *, is_there: bool) -> None:
        metadata = report["metadata"]
        namespace = metadata.get("namespace")
        resource = self._resource(namespace)
        if is_there:
            get = partial(self._client.get, resource, metadata["name"], namespace)
            report = with_first_seen(report, await self._limit.send(get))
        apply = partial(self._client.apply, resource, report, field_manager=FIELD_MANAGER, force=True)
        await self._limit.send(apply)

    def _resource(self, namespace: str | None) -> Resource:
        return KINDS[self._format].namespaced if namespace else KINDS[self._format].cluster
