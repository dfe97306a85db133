"""The reconciler of a planned kind: observe, plan, apply, status."""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from pydantic import ValidationError

from controller.runtime import status as statuses
from controller.runtime.apply import FIELD_MANAGER, Applier
from controller.runtime.cache import Cache
from controller.runtime.changes import events_of
from controller.runtime.conflict_backoff import Conflicts, ContestedError
from controller.runtime.events import EventRecorder
from controller.runtime.expectations import Expectations
from controller.runtime.explanations import Explanations
from controller.runtime.installations import Installations
from controller.runtime.kind import PlannedKind
from controller.runtime.metrics import KindMetrics
from controller.runtime.observed import Owner, Snapshot, live
from controller.runtime.obstacles import waited_for
from controller.runtime.ownership import NameTakenError, StillThereError
from controller.runtime.plan import Apply, CreateOnly, Event, Plan, Problem, Step
from controller.runtime.status import Failure
from controller.runtime.status_writer import StatusWriter
from controller.runtime.types import ReconcileRequest, Result, RetryableError, TerminalError
from kube.client import Client
from kube.errors import ApiError, Conflict, NotFound, is_of_ended_namespace
from kube.resource import JsonObject, Resource

LOG = logging.getLogger("gatewright.controller")

# Seconds until the next retry; the deletion of the other object is noticed at once.
NAME_TAKEN_INTERVAL = 60.0


@dataclass(frozen=True, slots=True)
class Reconciler:
    """Reconciles the objects of one planned kind."""

    kind: PlannedKind[Any]
    client: Client
    caches: Mapping[Resource, Cache]
    recorder: EventRecorder
    metrics: KindMetrics
    expectations: Expectations
    settings: Mapping[str, Any]
    explanations: Explanations
    conflicts: Conflicts
    status_writer: StatusWriter
    installations: Installations | None = None

    async def reconcile(self, request: ReconcileRequest) -> Result:
        """Reconcile one object; a planner that raises is that object's failure.

        It does nothing while an older installation reconciles the object.
        """
        others = self.installations
        if others is not None and others.precedes(self.kind.resource, request.namespace):
            return Result()
        observed = await self._observe(request)
        owner = observed.owner
        if owner is None:
            self.expectations.forget(request)
            self.conflicts.forget(request)
            self.explanations.forget(request)
            self.status_writer.forget(request)
            return Result()
        if owner.is_deleting and self.kind.finalizer not in owner.finalizers:
            return Result()
        try:
            return await self._reconcile(owner, observed)
        except (ApiError, RetryableError, TerminalError, TimeoutError):
            raise
        except Exception as error:
            await self._report_unplannable(owner, error)
            raise

    async def _reconcile(self, owner: Owner, observed: Snapshot) -> Result:
        """Plan, apply, write the status: one pass over one object."""
        try:
            parsed = self.kind.parse(owner.object)
        except ValidationError as error:
            problem = statuses.unreadable(error)
            await self._write_unplanned(owner, problem)
            raise self._permanent(owner, problem) from error
        plan = await self._plan(parsed, observed)
        failures = (
            {}
            if plan.finalized or owner.is_deleting
            else await self._set_finalizer(owner, present=True)
        )
        if not failures:
            applier = Applier(
                self.kind,
                self.client,
                self.caches,
                self.expectations,
                self.conflicts,
                owner,
                observed,
                self._other_installation(owner.request),
            )
            while await self._apply(plan, applier, failures):
                plan = await self._plan(parsed, observed)  # now with the API server's answers
            self._record(owner, events_of(applier.changes))
        if plan.finalized:
            unreleased = await self._set_finalizer(owner, present=False)
            if owner.is_deleting and not unreleased:
                return Result()
            failures |= unreleased
        plan, obstacles = await self._explain(plan, parsed, owner, observed)
        failed = list(failures.values())
        is_hidden = all(each.is_transient for each in failed) and statuses.is_ready(owner.status)
        # A transient failure of a ready object is retried before the status changes.
        if not failed or not is_hidden:
            status = statuses.status_of(
                plan, failed, owner.status, obstacles, generation=owner.generation, now=now()
            )
            await self._write_status(owner, status)
        self._record_events(plan, failed, owner)
        return self._result(plan, failed, owner)

    async def _observe(self, request: ReconcileRequest) -> Snapshot:
        """Take a snapshot.

        Own writes that the caches do not have in time are read from the API server.
        """
        observed = Snapshot(request, self.kind, self.caches, self.settings)
        for expectation in self.expectations.unmet(request):
            resource = expectation.cache.resource
            observed.record(
                resource, expectation.key, await live(self.client, resource, expectation.key)
            )
        return observed

    async def _plan(self, parsed: Any, observed: Snapshot) -> Plan:
        """Return the plan; the children that it needs and the caches omit are read first."""
        while True:
            plan = self.kind.plan(parsed, observed, now())
            for write in (write for step in plan.steps for write in step.writes):
                if isinstance(write, Apply | CreateOnly):
                    self._stored_child(observed, write.object)
            if not observed.omitted:
                return plan
            for resource, key in list(observed.omitted):
                self.expectations.expect_change(observed.request, self.caches[resource], key)
                observed.record(resource, key, await live(self.client, resource, key))

    def _stored_child(self, observed: Snapshot, object: JsonObject) -> JsonObject | None:
        """Return the stored state of a planned child."""
        metadata = object["metadata"]
        resource = self.kind.owned_resource(object)
        return observed.child(resource, metadata["name"], metadata.get("namespace"))

    async def _apply(self, plan: Plan, applier: Applier, failures: dict[str, Failure]) -> bool:
        """Execute the necessary writes of all steps that have not failed.

        Return whether anything was sent.
        """
        before, ready = len(applier.sent), set[str]()
        for step in plan.steps:
            if step.name in failures:
                continue
            try:
                await applier.apply(step, may_create=ready.issuperset(step.depends_on))
            except (ApiError, ContestedError, NameTakenError, StillThereError) as error:
                failures[step.name] = Failure(step, error)
            else:
                ready |= {step.name} if step.ready else set()
        return len(applier.sent) > before

    async def _explain(
        self, plan: Plan, parsed: Any, owner: Owner, observed: Snapshot
    ) -> tuple[Plan, Mapping[str, Problem]]:
        """Return what keeps the steps of a plan from being ready, by their names.

        The plan is made again with the obstacles of the objects that it could not explain.
        """
        if owner.is_deleting:
            return plan, {}

        waiting = waited_for(plan, partial(self._stored_child, observed))
        children = [child for step in waiting.values() for child in step]
        problems = await self.explanations.explain(owner.request, [*plan.unexplained, *children])
        if problems and plan.unexplained:
            observed.obstacles = problems
            plan = await self._plan(parsed, observed)
        obstacles = {}
        for name, step in waiting.items():
            of_step = (problems.get(child["metadata"]["uid"]) for child in step)
            if obstacle := next(filter(None, of_step), None):
                obstacles[name] = obstacle
        return plan, obstacles

    async def _set_finalizer(self, owner: Owner, *, present: bool) -> dict[str, Failure]:
        """Add the finalizer before anything that needs clean-up is created, or remove it.

        Return the failure.
        """
        finalizer, metadata = self.kind.finalizer, owner.object["metadata"]
        if not finalizer or (finalizer in owner.finalizers) == present:
            return {}
        others = [each for each in owner.finalizers if each != finalizer]
        names = [*others, finalizer] if present else others
        patch = {"metadata": {"resourceVersion": metadata["resourceVersion"], "finalizers": names}}
        namespace, name = owner.request
        try:
            answer = await self.client.patch(
                owner.resource, name, patch, namespace, field_manager=FIELD_MANAGER
            )
        except Conflict:  # the object has changed
            raise
        except ApiError as error:
            if isinstance(error, NotFound) and not present:  # the cache is behind
                return {}
            doing = "failed to add the finalizer" if present else "failed to remove the finalizer"
            return {"finalizer": Failure(Step("finalizer", (), doing=doing), error)}
        self._wrote(owner, answer)
        return {}

    async def _write_status(self, owner: Owner, status: JsonObject) -> None:
        """Write the status if it changed, and update the metrics."""
        await self.status_writer.write(owner, status)
        self.metrics.status(owner, status, now())
        if statuses.is_ready(status) and not statuses.is_ready(owner.status):
            self._record(owner, [Event("Ready", f"{self.kind.resource.kind} is ready")])

    def _other_installation(self, request: ReconcileRequest) -> str:
        """Return the Lease of another installation that reconciles an object; empty if none."""
        others = self.installations
        return others.other(self.kind.resource, request.namespace) if others else ""

    def _record_events(self, plan: Plan, failures: list[Failure], owner: Owner) -> None:
        """Record the plan's events, and permanent failures."""
        self._record(owner, plan.events)
        for failure in failures:
            if isinstance(failure.error, ContestedError) or (
                owner.is_deleting and not failure.is_permanent
            ):
                reason = "CleanUpFailed" if owner.is_deleting else failure.problem.reason
                self._warn(owner, reason, failure.problem)

    def _result(self, plan: Plan, failures: list[Failure], owner: Owner) -> Result:
        """Return when to reconcile again, or raise: a retryable error before a permanent one.

        What a namespace refuses that is being deleted, or is gone, is not retried: its object goes
        with it.
        """
        if owner.request.namespace:
            failures = [failure for failure in failures if not is_of_ended_namespace(failure.error)]
        for failure in failures:
            if not failure.is_permanent:
                raise failure.error
        if plan.problem or failures:
            error = self._permanent(owner, plan.problem or failures[0].problem)
            if any(isinstance(failure.error, NameTakenError) for failure in failures):
                raise RetryableError(str(error), retry_after=NAME_TAKEN_INTERVAL)
            raise error
        after = [
            None if seconds is None else timedelta(seconds=seconds)
            for seconds in (self.explanations.due_in(owner.request), self.status_writer.retry_in())
        ]
        return Result(requeue_after=min(filter(None, [plan.requeue_after, *after]), default=None))

    async def _report_unplannable(self, owner: Owner, error: Exception) -> None:
        """Write the status for an unexpected exception in the planner or in the writes."""
        problem = statuses.unplannable(self.kind.resource.kind, error)
        if owner.is_deleting:
            self._warn(owner, "CleanUpFailed", problem)
        try:
            await self._write_unplanned(owner, problem)
        except (ApiError, RetryableError) as unwritten:
            LOG.warning("The status could not be written", exc_info=unwritten)

    async def _write_unplanned(self, owner: Owner, problem: Problem) -> None:
        """Write a status with the reason why there is no plan, and keep the observed fields."""
        generation, shows_phase = owner.generation, self.kind.shows_phase
        status = statuses.status_of_unplanned(
            problem, owner.status, shows_phase=shows_phase, generation=generation, now=now()
        )
        await self._write_status(owner, status)

    def _permanent(self, owner: Owner, problem: Problem) -> TerminalError:
        """Record an error that only a change of the object can fix, and return it."""
        is_taken = problem.reason == "NameTaken"
        self._warn(owner, problem.reason if is_taken else "ReconcileFailed", problem)
        return TerminalError(problem.message)

    def _record(self, owner: Owner, events: Iterable[Event]) -> None:
        for event in events:
            self.recorder.record(owner.object, event)

    def _warn(self, owner: Owner, reason: str, problem: Problem) -> None:
        self.recorder.record(owner.object, Event(reason, problem.message, "Warning"))

    def _wrote(self, owner: Owner, answer: JsonObject) -> None:
        self.expectations.wrote(
            owner.request, self.caches[owner.resource], owner.request.key, answer
        )


def now() -> datetime:
    """Return the time."""
    return datetime.now(UTC)
