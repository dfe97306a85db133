"""Metrics: those of every controller, under controller-runtime's names, and those of each kind under its own prefix."""

import time
from collections.abc import Callable
from datetime import datetime

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from controller.runtime.kind import Counts
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

        def counter(name: str, about: str, *labels: str) -> Counter:
            return Counter(name, about, labels, registry=registry)

        def gauge(name: str, about: str, label: str = "name") -> Gauge:
            return Gauge(name, about, [label], registry=registry)

        def histogram(name: str, about: str, label: str, buckets: tuple[float, ...]) -> Histogram:
            return Histogram(name, about, [label], buckets=buckets, registry=registry)

        prefix = "controller_runtime_"
        self.total = counter(f"{prefix}reconcile", "Reconciles by result.", "controller", "result")
        self.errors = counter(f"{prefix}reconcile_errors", "Failed reconciles.", "controller")
        self.terminal = counter(f"{prefix}terminal_reconcile_errors", "Permanent failures.", "controller")
        self.timeouts = counter(f"{prefix}reconcile_timeouts", "Reconciles that took too long.", "controller")
        self.panics = counter(f"{prefix}reconcile_panics", "Reconciles with an unexpected exception.", "controller")
        self.workers = gauge(f"{prefix}max_concurrent_reconciles", "Workers.", "controller")
        self.active = gauge(f"{prefix}active_workers", "Workers that reconcile now.", "controller")
        self.seconds = histogram(
            f"{prefix}reconcile_time_seconds", "Duration of reconciles.", "controller", RECONCILE_BUCKETS
        )
        self.retries = counter("workqueue_retries", "Retries after a failure.", "name")
        self.adds = counter("workqueue_adds", "Keys added to the queue.", "name")
        self.depth = gauge("workqueue_depth", "Keys that wait.")
        self.waited = histogram("workqueue_queue_duration_seconds", "Wait of ready keys.", "name", QUEUE_BUCKETS)
        self.worked = histogram("workqueue_work_duration_seconds", "Processing time of keys.", "name", QUEUE_BUCKETS)
        self.unfinished = gauge("workqueue_unfinished_work_seconds", "Sum of the time that unfinished work has taken.")
        self.longest = gauge("workqueue_longest_running_processor_seconds", "Time of the longest unfinished work.")
        self.resources = Gauge(
            "gatewright_resources", "Custom resources by phase.", ["kind", "phase"], registry=registry
        )
        self._requests = counter("rest_client_requests", "Requests to the API server.", "code", "method", "host")
        self._leading = gauge("leader_election_master_status", "1 while leading.")
        self._counters: dict[str, Counter] = {}

    def of_controller(self, name: str, workers: int) -> "ControllerMetrics":
        """Return the metrics of a controller, each of them present from the start."""
        return ControllerMetrics(self, name, workers)

    def requests_to(self, host: str) -> Callable[[str, int, float], None]:
        """Return what a client calls after each answer."""

        def on_response(method: str, code: int, seconds: float) -> None:
            del seconds
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


class ControllerMetrics:
    """The metrics of one controller."""

    def __init__(self, metrics: Metrics, name: str, workers: int) -> None:
        self.adds = metrics.adds.labels(name)
        self._metrics = metrics
        self._name = name
        self._results = {result: metrics.total.labels(name, result) for result in RESULTS}
        self._errors, self._terminal = metrics.errors.labels(name), metrics.terminal.labels(name)
        self._timeouts, self._panics = metrics.timeouts.labels(name), metrics.panics.labels(name)
        self._retries = metrics.retries.labels(name)
        self._seconds = metrics.seconds.labels(name)
        self._waited, self._worked = metrics.waited.labels(name), metrics.worked.labels(name)
        metrics.workers.labels(name).set(workers)

    def follow(self, queue: WorkQueue[Request]) -> None:
        """Read the gauges from the controller's queue whenever they are scraped."""

        def unfinished() -> list[float]:
            now = time.monotonic()
            return [now - since for since in list(queue.processing.values())]

        metrics, name = self._metrics, self._name
        metrics.depth.labels(name).set_function(lambda: len(queue))
        metrics.active.labels(name).set_function(lambda: len(queue.processing))
        metrics.unfinished.labels(name).set_function(lambda: sum(unfinished()))
        metrics.longest.labels(name).set_function(lambda: max(unfinished(), default=0.0))

    def reconciled(self, outcome: Outcome, seconds: float, waited: float) -> None:
        """Count a reconcile."""
        failed = outcome in ("error", "terminal_error")
        self._results["error" if failed else outcome].inc()
        self._seconds.observe(seconds)
        self._worked.observe(seconds)
        self._waited.observe(waited)
        if failed:
            self._errors.inc()
            (self._retries if outcome == "error" else self._terminal).inc()

    def failed(self, *, timed_out: bool, expected: bool) -> None:
        """Count a reconcile that took too long, or raised an unexpected exception."""
        if timed_out:
            self._timeouts.inc()
        elif not expected:
            self._panics.inc()


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

    def phase(self, request: Request, phase: str | None) -> None:
        """Set the phase of an object; None when it is gone."""
        before = self._phases.pop(request, None)
        if phase is not None:
            self._phases[request] = phase
        if before == phase:
            return
        if before is not None:
            self._resources.labels(self._kind, before).dec()
        if phase is not None:
            self._resources.labels(self._kind, phase).inc()

    def ready(self, request: Request, metadata: Object, *, was_ready: bool, now: datetime) -> None:
        """Take an object that is ready; the time since its creation counts the first time."""
        if not was_ready and self._created.get(request) != metadata["uid"]:
            created = datetime.fromisoformat(metadata["creationTimestamp"])
            self._creation.labels(request.namespace or "").observe((now - created).total_seconds())
        self._created[request] = metadata["uid"]

    def status(self, before: Object, now: Object) -> None:
        """Take a status that was written."""
        if self._counts and self._changes and now.get(self._counts.field) not in (None, before.get(self._counts.field)):
            self._changes.inc()

    def forget(self, request: Request) -> None:
        """Remove the series of a deleted object."""
        self.phase(request, None)
        self._created.pop(request, None)
        if labels := self._labels(request):
            for result in set(KIND_RESULTS.values()):
                self._total.remove(*labels, result)
            self._seconds.remove(*labels)

    def _labels(self, request: Request) -> tuple[str, ...]:
        return (request.namespace or "", request.name) if self._per_object else ()
