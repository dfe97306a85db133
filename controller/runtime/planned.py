"""Carries out plans: all reads before them, all writes after them, and the status once."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from pydantic import ValidationError

from controller.runtime.caches import Caches
from controller.runtime.contests import ContestedError
from controller.runtime.controller import WORKERS, Controller
from controller.runtime.events import Recorder
from controller.runtime.guard import NameTakenError, StillThereError
from controller.runtime.kind_metrics import KindMetrics
from controller.runtime.metrics import Metrics
from controller.runtime.neighbours import NamesAwaited, readers
from controller.runtime.own_writes import OwnWrites
from controller.runtime.parent import Parent
from controller.runtime.plan import Apply, Once, Plan, Step, identity
from controller.runtime.planned_kind import PlannedKind, T
from controller.runtime.queue import LOW
from controller.runtime.reports import Reports
from controller.runtime.result import Outcome, Request, Result
from controller.runtime.status import Failure, mistaken, status_of, unreadable
from controller.runtime.view import View, index_name
from controller.runtime.wakes import primary
from controller.runtime.writes import Writer
from kube.client import Client
from kube.errors import AlreadyExists, ApiError, Conflict


class Planned:
    """The reconciler of one planned kind."""

    def __init__(
        self,
        kind: PlannedKind[T],
        client: Client,
        caches: Caches,
        recorder: Recorder,
        metrics: Metrics,
        *,
        workers: int = WORKERS,
        settings: Mapping[str, Any] | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._kind = kind
        self._now = now
        self._settings = settings or {}
        self._caches = {
            resource: caches.of(resource, optional=resource in kind.optional, labels=kind.read_labels.get(resource))
            for resource in (kind.resource, *kind.owns, *kind.reads)
        }
        self._primaries = self._caches[kind.resource]
        for resource, indexes in {kind.resource: kind.indexes, **kind.read_indexes}.items():
            for name, function in indexes.items():
                self._caches[resource].add_index(index_name(kind, name), function)
        self._own_writes = OwnWrites()
        self._writer = Writer(kind, client, self._caches, self._own_writes)
        self._metrics = KindMetrics(kind.resource.kind, metrics, kind.counts)
        self._reports = Reports(kind, self._writer, recorder, self._metrics, now)
        named = (f"{kind.name}.{each}" for each in ("name", "namespace", "generation", "resourceVersion"))
        self._logged = (*named, "phase", "replicas.desired", "replicas.ready")
        self._views: dict[Request, View] = {}  # of what is being reconciled
        self._names_awaited = NamesAwaited()
        self.controller = Controller(
            kind.name,
            reconcile=self.reconcile,
            metrics=metrics,
            workers=workers,
            own_writes=self._own_writes,
            describe=self._describe,
            on_mistake=self._mistaken,
            on_result=self._count,
        )
        self.controller.watch(self._primaries, primary, periodic=True)
        for resource in kind.owns:
            cache, names = self._caches[resource], self._names_awaited
            self.controller.watch_children(cache, kind.resource)
            self.controller.watch(cache, names.wakes(resource), while_some=names.awaited)
        for resource in kind.reads:
            wakes = readers(kind, self._primaries, kind.read_indexes[resource])
            self.controller.watch(self._caches[resource], wakes, while_some=self._primaries)
        for resource in kind.optional:
            self._caches[resource].subscribe_served(self._look_again)

    async def reconcile(self, request: Request) -> Result:
        """Make what exists for one object what its plan says, and write the status of that."""
        view = self._views.get(request) or self._view(request)
        for unseen in self._own_writes.unseen(request):  # the caches had their time
            view.answered(unseen.cache.resource, unseen.key, await self._writer.live(unseen.cache.resource, unseen.key))
        stored = view.parent
        if stored is None:
            self._writer.forget(request)
            self._names_awaited.forget(request)
            self._reports.forget(request)
            return Result()
        parent = Parent(request, self._kind.resource, stored)
        if parent.is_deleting and self._kind.finalizer not in parent.finalizers:
            return Result()
        try:
            object = self._kind.type.model_validate(stored)
        except ValidationError as error:
            problem = unreadable(error)
            await self._reports.unplanned(problem, parent)
            raise self._reports.permanent(problem, parent) from error
        return await self._see_to(object, parent, view)

    async def _see_to(self, object: Any, parent: Parent, view: View) -> Result:
        plan = self._kind.plan(object, view, self._now())
        failures = await self._hold(plan, parent)
        if not failures:
            plan, failures = await self._carry_out(plan, object, parent, view)
        if plan.finalized and self._kind.finalizer in parent.finalizers:
            held = await self._release(parent)
            if parent.is_deleting and not held:
                return Result()
            failures += held
        is_conflict = failures and all(isinstance(each.error, Conflict | AlreadyExists) for each in failures)
        if is_conflict and self.controller.tries_again_at_once(parent.request):
            raise failures[0].error  # not worth a status
        status = status_of(plan, failures, parent.status, generation=parent.generation, now=self._now())
        await self._reports.status(status, parent)
        self._reports.tell(plan, failures, parent)
        for failure in failures:
            if not failure.is_permanent:
                raise failure.error
        if plan.problem or failures:
            raise self._reports.permanent(plan.problem or failures[0].problem, parent)
        return Result(requeue_after=plan.requeue_after)

    async def _carry_out(self, plan: Plan, object: Any, parent: Parent, view: View) -> tuple[Plan, list[Failure]]:
        """Make a plan's writes, then plan again on the answers, until there is nothing left to write.

        What is written, and what fails, is not tried again before the next reconcile. The last plan is returned: the
        one that has seen everything.
        """
        sent: set[object] = set()
        failures: dict[str, Failure] = {}
        while True:
            before, holding = len(sent), set[str]()
            for step in plan.steps:
                if step.name not in failures:
                    try:
                        await self._make(step, parent, view, sent, may_create=holding.issuperset(step.needs))
                    except (ApiError, ContestedError, NameTakenError, StillThereError) as error:
                        failures[step.name] = Failure(step, error)
                        self._names_awaited.note(error, parent.request)
                if step.holds and step.name not in failures:
                    holding.add(step.name)
            if len(sent) == before:
                return plan, list(failures.values())
            plan = self._kind.plan(object, view, self._now())

    async def _make(self, step: Step, parent: Parent, view: View, sent: set[object], *, may_create: bool) -> None:
        """Make the writes of a step that are needed and not yet sent; an object that is being deleted gets nothing."""
        contested: ContestedError | None = None
        for write in step.writes:
            if (sent and identity(write) in sent) or (parent.is_deleting and isinstance(write, Apply | Once)):
                continue
            try:
                if await self._writer.write(write, parent, view, may_create=may_create):
                    sent.add(identity(write))
            except ContestedError as error:  # the other objects of the step have nothing to do with it
                contested = error
        if contested is not None:
            raise contested

    async def _hold(self, plan: Plan, parent: Parent) -> list[Failure]:
        """Add our finalizer before anything is done that must be undone."""
        finalizer = self._kind.finalizer
        if not finalizer or plan.finalized or parent.is_deleting or finalizer in parent.finalizers:
            return []
        return await self._finalizers([*parent.finalizers, finalizer], parent, "failed to put on the finalizer")

    async def _release(self, parent: Parent) -> list[Failure]:
        """Drop our finalizer: there is nothing to undo."""
        others = [each for each in parent.finalizers if each != self._kind.finalizer]
        return await self._finalizers(others, parent, "failed to take off the finalizer")

    async def _finalizers(self, names: list[str], parent: Parent, doing: str) -> list[Failure]:
        try:
            await self._writer.finalizers(names, parent)
        except Conflict:
            raise  # it changed since it was read: tried again in milliseconds
        except ApiError as error:
            return [Failure(Step("finalizer", (), doing=doing), error)]
        return []

    async def _mistaken(self, request: Request, error: Exception) -> None:
        """Let the status say that planning an object, or carrying out its plan, met a mistake in the code."""
        stored = self._views[request].parent
        if stored is not None:
            parent, problem = Parent(request, self._kind.resource, stored), mistaken(self._kind.resource.kind, error)
            if parent.is_deleting:
                self._reports.warn("CleanUpFailed", problem, parent)
            await self._reports.unplanned(problem, parent)

    def _look_again(self) -> None:
        """Plan anew for all: an API that planners can do without has come or gone."""
        for key in self._primaries:
            self.controller.add(Request.of(key), priority=LOW)

    def _view(self, request: Request) -> View:
        return View(request, self._kind, self._caches, self._settings)

    def _describe(self, request: Request) -> dict[str, Any]:
        """Return the log fields of a request, whose reconcile begins now: it sees what they were read from."""
        view = self._views[request] = self._view(request)
        stored = view.parent or {}
        metadata, spec, status = (stored.get(each) or {} for each in ("metadata", "spec", "status"))
        said = (
            *(request.name, request.namespace, metadata.get("generation"), metadata.get("resourceVersion")),
            *(status.get("phase"), spec.get("replicas"), status.get("readyReplicas")),
        )
        return {field: value for field, value in zip(self._logged, said, strict=True) if value is not None}

    def _count(self, request: Request, outcome: Outcome, seconds: float) -> None:
        self._views.pop(request, None)
        if self._primaries.entry(request.key) is None:
            self._metrics.forget(request)
        else:
            self._metrics.reconciled(request, outcome, seconds)
