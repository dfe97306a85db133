"""Metrics: those of every controller, under controller-runtime's names, and those of each kind under its own prefix."""

import time
from collections.abc import Callable
from datetime import datetime
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from controller.runtime.kind import Counts
from controller.runtime.observed import Owner
from controller.runtime.status import is_ready, ready_in, was_ready
from controller.runtime.types import Object, Outcome, Request
from controller.runtime.workqueue import WorkQueue

# fmt: off
RECONCILE_BUCKETS = (
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0,
    1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60,
)
# fmt: on
QUEUE_BUCKETS = tuple(1e-8 * 10**power for power in range(12))
KIND_BUCKETS = (0.1, 0.5, 1.0, 2.5, 5.0, 10.0)
CREATION_BUCKETS = (1, 5, 10, 30, 60, 120, 300)
RESULTS = ("success", "error", "requeue", "requeue_after")
KIND_RESULTS: dict[Outcome, str] = {
    "success": "success",
    "requeue_after": "requeue",
    "error": "error",
    "terminal_error": "error",
}


class Metrics:
    """The metrics of all controllers of a process."""

    def __init__(self, registry: CollectorRegistry, *, per_object: bool = True) -> None:
        """`per_object`: a kind's metrics have the labels `namespace` and `name`; large clusters turn that off."""
        self.registry = registry
        self.per_object = per_object
        counter, gauge = partial(Counter, registry=registry), partial(Gauge, registry=registry)
        histogram = partial(Histogram, registry=registry)
        controller, name, prefix = ["controller"], ["name"], "controller_runtime_"
        self._total = counter(f"{prefix}reconcile", "Reconciles by result.", [*controller, "result"])
        self._errors = counter(f"{prefix}reconcile_errors", "Failed reconciles.", controller)
        self._terminal = counter(f"{prefix}terminal_reconcile_errors", "Permanent failures.", controller)
        self._timeouts = counter(f"{prefix}reconcile_timeouts", "Reconciles that took too long.", controller)
        self._panics = counter(f"{prefix}reconcile_panics", "Reconciles with an unexpected exception.", controller)
        self._workers = gauge(f"{prefix}max_concurrent_reconciles", "Workers.", controller)
        self._active = gauge(f"{prefix}active_workers", "Workers that reconcile now.", controller)
        time_name, about = f"{prefix}reconcile_time_seconds", "Duration of reconciles."
        self._seconds = histogram(time_name, about, controller, buckets=RECONCILE_BUCKETS)
        self._retries = counter("workqueue_retries", "Retries after a failure.", name)
        self.adds = counter("workqueue_adds", "Keys added to the queue.", name)
        self._depth = gauge("workqueue_depth", "Keys that wait.", name)
        wait_name, work_name = "workqueue_queue_duration_seconds", "workqueue_work_duration_seconds"
        self._waited = histogram(wait_name, "Wait of ready keys.", name, buckets=QUEUE_BUCKETS)
        self._worked = histogram(work_name, "Processing time of keys.", name, buckets=QUEUE_BUCKETS)
        about = "Sum of the time that unfinished work has taken."
        self._unfinished = gauge("workqueue_unfinished_work_seconds", about, name)
        about = "Time of the longest unfinished work."
        self._longest = gauge("workqueue_longest_running_processor_seconds", about, name)
        self.resources = gauge("gatewright_resources", "Custom resources by phase.", ["kind", "phase"])
        self._requests = counter("rest_client_requests", "Requests to the API server.", ["code", "method", "host"])
        self._leading = gauge("leader_election_master_status", "1 while leading.", name)
        self._counters: dict[str, Counter] = {}

    def follow(self, name: str, queue: WorkQueue[Request], workers: int) -> None:
        """Have all metrics of a controller from the start; its gauges are read from its queue."""

        def unfinished() -> list[float]:
            now = time.monotonic()
            return [now - since for since in list(queue.processing.values())]

        for result in RESULTS:
            self._total.labels(name, result)
        for metric in (self._errors, self._terminal, self._timeouts, self._panics, self._seconds):
            metric.labels(name)
        for metric in (self._retries, self._waited, self._worked):
            metric.labels(name)
        self._workers.labels(name).set(workers)
        self._depth.labels(name).set_function(lambda: len(queue))
        self._active.labels(name).set_function(lambda: len(queue.processing))
        self._unfinished.labels(name).set_function(lambda: sum(unfinished()))
        self._longest.labels(name).set_function(lambda: max(unfinished(), default=0.0))

    def reconciled(self, name: str, outcome: Outcome, seconds: float, waited: float) -> None:
        """Count a reconcile of a controller."""
        failed = outcome in ("error", "terminal_error")
        self._total.labels(name, "error" if failed else outcome).inc()
        self._seconds.labels(name).observe(seconds)
        self._worked.labels(name).observe(seconds)
        self._waited.labels(name).observe(waited)
        if failed:
            self._errors.labels(name).inc()
            (self._retries if outcome == "error" else self._terminal).labels(name).inc()

    def failed(self, name: str, *, timed_out: bool, expected: bool) -> None:
        """Count a reconcile that took too long, or raised an unexpected exception."""
        if timed_out or not expected:
            (self._timeouts if timed_out else self._panics).labels(name).inc()

    def requests_to(self, host: str) -> Callable[[str, int], None]:
        """Return what a client calls after each answer."""

        def on_response(method: str, code: int) -> None:
            self._requests.labels(str(code) if code else "<error>", method, host).inc()

        return on_response

    def counter(self, name: str, about: str) -> Counter:
        """Return the counter of this name, which several kinds may share."""
        if name not in self._counters:
            self._counters[name] = Counter(name, about, registry=self.registry)
        return self._counters[name]

    def leading(self, name: str, leads: Callable[[], bool]) -> None:
        """Show whether this process leads, whenever that is scraped."""
        self._leading.labels(name).set_function(leads)


class KindMetrics:
    """The metrics of one kind, under its own prefix."""

    def __init__(self, kind: str, metrics: Metrics, counts: Counts | None = None) -> None:
        prefix, registry = kind.lower(), metrics.registry
        labels = ["namespace", "name"] if metrics.per_object else []
        self._kind = kind
        self._per_object = metrics.per_object
        self._total = Counter(f"{prefix}_reconcile", "Reconciles by result.", [*labels, "result"], registry=registry)
        self._seconds = Histogram(
            f"{prefix}_reconcile_duration_seconds",
            "Duration of reconciles.",
            labels,
            buckets=KIND_BUCKETS,
            registry=registry,
        )
        self._creation = Histogram(
            f"{prefix}_creation_duration_seconds",
            "Time from creation to first being ready.",
            ["namespace"],
            buckets=CREATION_BUCKETS,
            registry=registry,
        )
        self._errors = Counter(f"{prefix}_errors", "Failed reconciles.", ["type"], registry=registry)
        for type in ("retryable", "permanent"):
            self._errors.labels(type)
        self._resources = metrics.resources
        self._phases: dict[Request, str] = {}
        self._created: dict[Request, str] = {}
        self._counts = counts
        self._changes = metrics.counter(counts.name, counts.about) if counts else None

    def reconciled(self, request: Request, outcome: Outcome, seconds: float) -> None:
        """Count a reconcile."""
        labels = self._labels(request)
        self._total.labels(*labels, KIND_RESULTS[outcome]).inc()
        (self._seconds.labels(*labels) if labels else self._seconds).observe(seconds)
        if outcome in ("error", "terminal_error"):
            self._errors.labels("retryable" if outcome == "error" else "permanent").inc()

    def status(self, owner: Owner, status: Object, now: datetime) -> None:
        """Take the new status of an object, written or not."""
        before, ready, request = owner.status, is_ready(status), owner.request
        self._phase(request, status.get("phase") or ("Ready" if ready else "NotReady"))
        counted = self._counts and self._counts.field
        if self._changes and counted and status.get(counted) not in (None, before.get(counted)):
            self._changes.inc()
        if ready and self._created.get(request) != owner.uid:
            self._created[request] = owner.uid
            if not was_ready(ready_in(before)):
                age = now - datetime.fromisoformat(owner.object["metadata"]["creationTimestamp"])
                self._creation.labels(request.namespace or "").observe(age.total_seconds())

    def forget(self, request: Request) -> None:
        """Remove the series of a deleted object."""
        self._phase(request, None)
        self._created.pop(request, None)
        if labels := self._labels(request):
            for result in set(KIND_RESULTS.values()):
                self._total.remove(*labels, result)
            self._seconds.remove(*labels)

    def _labels(self, request: Request) -> tuple[str, ...]:
        return (request.namespace or "", request.name) if self._per_object else ()

    def _phase(self, request: Request, phase: str | None) -> None:
        """Set the phase of an object; None when it is gone."""
        before = self._phases.pop(request, None)
        if phase is not None:
            self._phases[request] = phase
            self._resources.labels(self._kind, phase).inc()
        if before is not None:
            self._resources.labels(self._kind, before).dec()
