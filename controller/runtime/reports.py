"""Reports how the objects of a kind are: in their status, by events, and in what is counted of the kind."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from controller.runtime.conditions import is_ready, ready_in
from controller.runtime.contests import ContestedError
from controller.runtime.events import Recorder
from controller.runtime.kind_metrics import KindMetrics
from controller.runtime.parent import Parent
from controller.runtime.plan import Event, Object, Plan, Problem
from controller.runtime.planned_kind import PlannedKind
from controller.runtime.result import Request, TerminalError
from controller.runtime.status import Failure, status_of_unplanned, was_ready
from controller.runtime.writes import Writer
from kube.errors import NotFound


class Reports:
    """What is said of one kind's objects."""

    def __init__(
        self,
        kind: PlannedKind[Any],
        writer: Writer,
        recorder: Recorder,
        metrics: KindMetrics,
        now: Callable[[], datetime],
    ) -> None:
        self._kind = kind
        self._writer = writer
        self._recorder = recorder
        self._metrics = metrics
        self._now = now
        self._been_ready: dict[Request, str] = {}

    async def status(self, status: Object, parent: Parent) -> None:
        """Write the status if it changed, and count what that change means."""
        try:
            written = await self._writer.status(status, parent)
        except NotFound:
            return  # it is gone: the next reconcile sees that
        if written:
            self._metrics.status(parent.status, status)
        ready = is_ready(status)
        self._metrics.phase(parent.request, status.get("phase") or ("Ready" if ready else "NotReady"))
        before = self._been_ready.get(parent.request) == parent.uid or was_ready(ready_in(parent.status))
        if ready or before:
            self._been_ready[parent.request] = parent.uid
        if ready and not before:
            born = datetime.fromisoformat(parent.object["metadata"]["creationTimestamp"])
            self._metrics.created(parent.request, (self._now() - born).total_seconds())

    async def unplanned(self, problem: Problem, parent: Parent) -> None:
        """Write why there is no plan; what was observed before stays."""
        status = status_of_unplanned(
            problem,
            parent.status,
            shows_phase=self._kind.shows_phase,
            generation=parent.generation,
            now=self._now(),
        )
        await self.status(status, parent)

    def tell(self, plan: Plan, failures: Sequence[Failure], parent: Parent) -> None:
        """Tell what the plan wants told, and of failures that go on until somebody does something."""
        for event in plan.events:
            self._recorder.tell(parent.object, event)
        for failure in failures:
            if isinstance(failure.error, ContestedError) or (parent.is_deleting and not failure.is_permanent):
                self.warn("CleanUpFailed" if parent.is_deleting else failure.problem.reason, failure.problem, parent)

    def permanent(self, problem: Problem, parent: Parent) -> TerminalError:
        """Tell of an error that only a change can mend, and return it."""
        self.warn(problem.reason if problem.reason == "NameTaken" else "ReconcileFailed", problem, parent)
        return TerminalError(problem.message)

    def warn(self, reason: str, problem: Problem, parent: Parent) -> None:
        """Tell of a problem by a Warning event."""
        self._recorder.tell(parent.object, Event(reason, problem.message, "Warning"))

    def forget(self, request: Request) -> None:
        """Forget an object that is gone."""
        self._been_ready.pop(request, None)
