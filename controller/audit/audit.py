"""The audit: one pass lists, judges and reports the objects in the cluster.

The leader repeats it.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Collection
from datetime import UTC, datetime, timedelta
from functools import partial

from prometheus_client import CollectorRegistry

from controller.audit.images import ImageVerifier
from controller.audit.inventory import existing, look_up
from controller.audit.judge import ObjectJudge
from controller.audit.kubernetes_policies import VALIDATING, kubernetes_policies
from controller.audit.listing import Lister, RateLimit
from controller.audit.metrics import AuditMetrics
from controller.audit.reports import (
    KINDS,
    SELECTOR,
    ReportChanges,
    ReportFormat,
    Stored,
    changes,
    report,
    with_first_seen,
)
from controller.audit.results import ObjectResults, results_of
from controller.audit.violators import Violators
from controller.runtime.cache import Caches
from controller.runtime.controller import Controller
from controller.runtime.metrics import ControllerMetrics
from controller.runtime.sources import always, spec_changed
from controller.runtime.types import ReconcileRequest, Result
from kube.client import Client
from kube.errors import ApiError, Forbidden, Invalid, NotFound
from webhook.engine import Engine
from webhook.policy_sets.admission_policies import join_policies
from webhook.registries.cache import ImageLookUps

FIELD_MANAGER = "gatewright-audit"
REQUEST = ReconcileRequest(None, "cluster")
# The fields of a policy object's status that an audit sets.
FIGURES = ("violations", "wouldDeny", "auditedObjects")
SOON = timedelta(seconds=15)  # minimum time between the starts of two passes
TIMEOUT = 3600.0  # seconds: 5,000 reports take minutes at the default rate
YIELD_EVERY = 20  # objects judged before other tasks of the process run

log = logging.getLogger("gatewright.audit")


class Audit:
    """Audits the cluster every `interval`, and soon after the policies change."""

    def __init__(
        self,
        client: Client,
        engine: Callable[[], Engine | None],
        registry: CollectorRegistry,
        *,
        interval: timedelta,
        qps: float,
        format: ReportFormat = "openreports",
        namespaces: Collection[str] = (),
        excluded_namespaces: Collection[str] = (),
        kubernetes: bool = False,
        images: ImageLookUps | None = None,
        on_judged: Callable[[], None] = lambda: None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Take the engine in force (None until it is known), and the audit's settings.

        With `kubernetes`, the cluster's ValidatingAdmissionPolicies judge too. `images` reads
        registries. `on_judged` is called when a pass has new totals.
        """
        self._client = client
        self._engine = engine
        self._interval = interval
        self._limit = RateLimit(qps)
        self._format = format
        self._namespaces = tuple(namespaces)
        self._excluded = excluded_namespaces
        self._kubernetes = kubernetes
        self._images = images
        self._on_judged = on_judged
        self._now = now
        self._metrics = AuditMetrics(registry, interval)
        self._started: datetime | None = None
        self._counting: Engine | None = None  # of the last pass
        self.totals: dict[str, dict[str, int]] | None = None
        """FIGURES of the last finished pass by policy object: its name, or `namespace/name`."""
        self.covers = Counter[str]()
        """The number of violations that each exception covered in that pass, by title."""

    def controller(self, metrics: ControllerMetrics, caches: Caches) -> Controller:
        """Return the controller that runs it.

        Enqueueing REQUEST starts a pass soon, as a change of Kubernetes' policies does.
        """
        controller = Controller(
            "audit", reconcile=self.reconcile, metrics=metrics, workers=1, timeout=TIMEOUT
        )
        for resource in VALIDATING if self._kubernetes else ():
            controller.watch(caches.of(resource, optional=True), always(REQUEST), spec_changed)
        controller.add(REQUEST)
        return controller

    async def reconcile(self, _: ReconcileRequest) -> Result:
        """Run one pass, unless the last one started less than SOON ago.

        Raises ApiError if nothing can be read or written.
        """
        engine, now = self._engine(), self._now()
        if engine is None:
            return Result(SOON)
        if self._started is not None and now - self._started < SOON:
            return Result(self._started + SOON - now)
        self._started = now
        began = time.monotonic()
        lister = Lister(self._client, self._limit, self._namespaces)
        judge = await self._judge(engine, lister, now)
        violators, number = await self._find_violating(judge, lister)
        for resource, error in lister.unread.items():
            log.warning("%s cannot be audited: %s", resource.plural, error)
        self.totals = totals(judge.engine, violators, number)
        self._metrics.set_violations(violators.violations, number)
        self._on_judged()
        written = await self._report(violators, lister, now)
        seconds = time.monotonic() - began
        self._metrics.record_end(seconds, None if lister.unread or written is None else self._now())
        fields = {"objects": number, "violating": violators.number, "seconds": round(seconds, 1)}
        if written is not None:
            fields |= {"applied": len(written.apply), "deleted": len(written.delete)}
        log.info("audit finished", extra={"fields": fields})
        return Result(self._interval)

    async def _judge(self, engine: Engine, lister: Lister, now: datetime) -> ObjectJudge:
        """Return the judge with this engine and, if enabled, Kubernetes' own policies.

        Raises ApiError if a look-up of policies cannot be listed, since they could not decide then.
        """
        # Before Kubernetes' own policies, which have no look-ups and may be unreadable.
        data = await look_up(lister, engine)
        if lister.unread:
            raise next(iter(lister.unread.values()))
        if self._kubernetes:
            natives = await kubernetes_policies(lister)
            for native in natives:
                for path, text in native.faults:
                    log.warning("%s is not audited: %s: %s", native.document.source, path, text)
            engine = join_policies(engine, (policy for each in natives for policy in each.policies))
        # In a thread: the first engine of thousands of policies takes a second, later ones use it.
        self._counting = await asyncio.to_thread(engine.counting_exceptions, self._counting)
        return await asyncio.to_thread(ObjectJudge, self._counting, data, now)

    async def _find_violating(self, judge: ObjectJudge, lister: Lister) -> tuple[Violators, int]:
        """Return the objects with violations, and how many were judged."""
        policies = {each.title: each for each in judge.engine.policies}
        violators = Violators()
        covers = Counter[str]()
        number = 0
        verifier = ImageVerifier(judge, self._images) if self._images else None
        async for existing_object in existing(lister, [judge], self._excluded):
            number += 1
            verdict = (
                await verifier.verdict(existing_object) if verifier else judge(*existing_object)
            )
            for outcome in verdict.outcomes:
                covers.update(outcome.covered)
            judged = results_of(existing_object.object, verdict, policies)
            if judged is not None:
                violators.add(judged)
            if number % YIELD_EVERY == 0:
                await asyncio.sleep(0)
        self.covers = covers
        return violators, number

    async def _report(
        self, violators: Violators, lister: Lister, now: datetime
    ) -> ReportChanges | None:
        """Bring the reports in the cluster up to date.

        Return the changes; None if the CRDs of the reports are not installed, or the API server
        refuses a report. Those of other namespaces are still written.
        """
        kinds = KINDS[self._format]
        stored = list[Stored]()
        try:
            for resource in kinds:
                listed = lister.list(resource, metadata_only=True, labels=SELECTOR)
                stored += [Stored.of(each["metadata"]) async for each in listed]
        except NotFound:
            log.warning(
                "no audit reports are written: the CRDs of %s are not installed", self._format
            )
            return None
        planned = changes(violators, stored, {(each.group, each.kind) for each in lister.unread})
        there = {each.name for each in stored}
        writes = [
            (
                planned_report.namespace,
                partial(self._apply, planned_report, now, is_there=planned_report.uid in there),
            )
            for planned_report in planned.apply
        ]
        for planned_report in planned.delete:
            delete = partial(
                self._client.delete,
                kinds.of(planned_report.namespace),
                planned_report.name,
                planned_report.namespace,
            )
            writes.append((planned_report.namespace, partial(self._limit.send, delete)))
        refused: dict[str, ApiError] = {}
        for namespace, write in writes:
            if namespace in refused:
                continue
            try:
                await write()
            except NotFound:
                pass  # it was deleted with its object or namespace
            except (Forbidden, Invalid) as error:  # such as by a quota of the namespace
                refused[namespace] = error
        for namespace, reason in refused.items():
            log.warning("reports in %s are not written: %s", namespace or "the cluster", reason)
        return None if refused else planned

    async def _apply(self, judged: ObjectResults, now: datetime, *, is_there: bool) -> None:
        resource = KINDS[self._format].of(judged.namespace)
        new = report(judged, self._format, now)
        if is_there:
            get = partial(self._client.get, resource, judged.uid, judged.namespace)
            new = with_first_seen(new, await self._limit.send(get))
        apply = partial(self._client.apply, resource, new, field_manager=FIELD_MANAGER, force=True)
        await self._limit.send(apply)


def totals(engine: Engine, violators: Violators, objects: int) -> dict[str, dict[str, int]]:
    """Return FIGURES by policy: violations, objects with one, and objects judged."""
    violations = Counter[str]()
    for (policy, *_), number in violators.violations.items():
        violations[policy] += number
    titles = {each.title for each in engine.policies} | violations.keys()
    return {
        title: dict(
            zip(FIGURES, (violations[title], violators.objects[title], objects), strict=True)
        )
        for title in titles
    }
