"""The audit: one pass lists, judges and reports what stands in the cluster; the leader repeats it."""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial

from prometheus_client import CollectorRegistry

from controller.audit.inventory import objects, take_inventory
from controller.audit.judge import Judge, Judged
from controller.audit.kubernetes_policies import VALIDATING, joined, kubernetes_policies
from controller.audit.listing import Lister, RateLimit
from controller.audit.metrics import AuditMetrics
from controller.audit.reports import (
    KINDS,
    MAX_REPORTS,
    SELECTOR,
    Changes,
    Format,
    GroupKind,
    Stored,
    changes,
    report,
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
from webhook.engine import Engine
from webhook.engine.kinds import Kind

FIELD_MANAGER = "gatewright-audit"
REQUEST = Request(None, "cluster")
FIGURES = ("violations", "wouldDeny", "auditedObjects")  # of an audit, in the status of a policy object
SOON = timedelta(seconds=15)  # at least, between the starts of two passes
TIMEOUT = 3600.0  # seconds: 5,000 reports take minutes at the default rate
YIELD_EVERY = 20  # objects judged before other tasks of the process run

log = logging.getLogger("gatewright.audit")


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
        kubernetes: bool = False,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Take the engine in force as a function (None until it is known), and what `gatewright controller` sets.

        `kubernetes`: judge by the ValidatingAdmissionPolicies in the cluster too.
        """
        self._client, self._engine, self._now = client, engine, now
        self._interval, self._limit, self._format = interval, RateLimit(qps), format
        self._namespaces, self._excluded = tuple(namespaces), excluded_namespaces
        self._kubernetes = kubernetes
        self._metrics = AuditMetrics(registry, interval)
        self._started: datetime | None = None
        self.on_finished: Callable[[], None] = lambda: None
        self.totals: dict[str, dict[str, int]] | None = None
        """FIGURES of the last finished pass by policy object: its name, or `namespace/name`."""

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
            engine = await self._with_kubernetes_policies(engine, lister)
        found, number, unread = await self._judge(engine, lister, now)
        self.totals = totals(engine, found, number)
        self._metrics.judged(found, number)
        self.on_finished()
        written = await self._report(found, lister, now, unread)
        seconds = time.monotonic() - began
        self._metrics.finished(seconds, None if unread or written is None else self._now())
        fields = {"objects": number, "violating": len(found), "seconds": round(seconds, 1)}
        if written is not None:
            fields |= {"applied": len(written.apply), "deleted": len(written.delete)}
        log.info("audit finished", extra={"fields": fields})
        return Result(self._interval)

    async def _with_kubernetes_policies(self, engine: Engine, lister: Lister) -> Engine:
        """Return the engine with Kubernetes' own policies in force; log those that cannot be evaluated."""
        try:
            found = await kubernetes_policies(lister)
        except Forbidden as error:
            log.warning("ValidatingAdmissionPolicies are not audited: %s", error)
            return engine
        for each in found:
            for path, text in each.faults:
                log.warning("%s is not audited: %s: %s", each.document.source, path, text)
        return joined(engine, (policy for each in found for policy in each.policies))

    async def _judge(self, engine: Engine, lister: Lister, now: datetime) -> tuple[list[Judged], int, set[GroupKind]]:
        """Return the objects with violations, how many were judged, and the kinds that could not be listed."""
        unread = set[GroupKind]()

        def refused(kind: Kind, error: ApiError) -> None:
            unread.add((kind.group, kind.kind))
            log.warning("%s cannot be audited: %s", kind.plural, error)

        scope = Scope([engine], self._excluded)
        judge = Judge(engine, await take_inventory(lister, engine, now))
        found, number = list[Judged](), 0
        async for kind, object in objects(lister, scope, refused):
            number += 1
            judged = judge(kind, object, is_owned=scope.is_owned(kind, object))
            if judged is not None:
                found.append(judged)
            if number % YIELD_EVERY == 0:
                await asyncio.sleep(0)
        return found, number, unread

    async def _report(
        self, found: list[Judged], lister: Lister, now: datetime, unread: set[GroupKind]
    ) -> Changes | None:
        """Bring the reports in the cluster up to date; return what was written, None where there can be no reports."""
        kinds = KINDS[self._format]
        stored = list[Stored]()
        try:
            for resource in kinds:
                listed = lister.objects(resource, metadata_only=True, labels=SELECTOR, first=MAX_REPORTS)
                stored += [Stored.of(each["metadata"]) async for each in listed]
        except NotFound:
            log.warning("no audit reports are written: the CRDs of %s are not installed", self._format)
            return None
        planned = changes(found, stored, unread)
        there = {each.name for each in stored}
        for judged in planned.apply:
            with suppress(NotFound):  # it is gone with its object, or its namespace
                await self._apply(judged, now, is_there=judged.uid in there)
        for each in planned.delete:
            delete = partial(self._client.delete, kinds.of(each.namespace), each.name, each.namespace)
            with suppress(NotFound):
                await self._limit.send(delete)
        return planned

    async def _apply(self, judged: Judged, now: datetime, *, is_there: bool) -> None:
        resource, new = KINDS[self._format].of(judged.namespace), report(judged, self._format, now)
        if is_there:
            get = partial(self._client.get, resource, judged.uid, judged.namespace)
            new = with_first_seen(new, await self._limit.send(get))
        apply = partial(self._client.apply, resource, new, field_manager=FIELD_MANAGER, force=True)
        await self._limit.send(apply)


def totals(engine: Engine, found: Iterable[Judged], objects: int) -> dict[str, dict[str, int]]:
    """Return FIGURES by policy: violations, objects with one, and how many `objects` were judged."""
    violations, violating = Counter[str](), Counter[str]()
    for judged in found:
        policies = [result.policy for result in judged.results]
        violations.update(policies)
        violating.update(set(policies))
    titles = {each.title for each in engine.policies} | violations.keys()
    return {title: dict(zip(FIGURES, (violations[title], violating[title], objects), strict=True)) for title in titles}
