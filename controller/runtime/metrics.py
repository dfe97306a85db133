"""Metrics of all controllers under controller-runtime's names, and of each kind."""

import time
from datetime import datetime
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from controller.runtime.kind import Counts
from controller.runtime.observed import Owner
from controller.runtime.status import is_ready, ready_in, was_ready
from controller.runtime.types import ReconcileOutcome, ReconcileRequest
from controller.runtime.workqueue import WorkQueue
from kube.resource import JsonObject

# fmt: off
RECONCILE_BUCKETS = (
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9,
    1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50,
    60,
)
# fmt: on
QUEUE_BUCKETS = tuple(1e-8 * 10**power for power in range(12))
KIND_BUCKETS = (0.1, 0.5, 1.0, 2.5, 5.0, 10.0)
CREATION_BUCKETS = (1, 5, 10, 30, 60, 120, 300)
RESULTS = ("success", "error", "requeue", "requeue_after")
KIND_RESULTS = ("success", "error", "requeue")


class ControllerMetrics:
    """The metrics of all controllers of a process."""

    def __init__(self, registry: CollectorRegistry, *, per_object: bool = True) -> None:
        """With `per_object`, metrics of kinds have the labels `namespace` and `name`.

        Large clusters turn this off.
        """
        self.registry = registry
        self.per_object = per_object
        runtime: Any = {
            "namespace": "controller_runtime",
            "labelnames": ["controller"],
            "registry": registry,
        }
        queue: Any = {"namespace": "workqueue", "labelnames": ["name"], "registry": registry}
        results = {**runtime, "labelnames": ["controller", "result"]}
        self._total = Counter("reconcile", "Reconciles by result.", **results)
        self._errors = Counter("reconcile_errors", "Failed reconciles.", **runtime)
        self._by_outcome: dict[ReconcileOutcome, Counter] = {
            "terminal_error": Counter(
                "terminal_reconcile_errors", "Permanent failures.", **runtime
            ),
            "timeout": Counter("reconcile_timeouts", "Reconciles that took too long.", **runtime),
            "panic": Counter(
                "reconcile_panics", "Reconciles with an unexpected exception.", **runtime
            ),
        }
        self._workers = Gauge("max_concurrent_reconciles", "Workers.", **runtime)
        self._active = Gauge("active_workers", "Workers that reconcile now.", **runtime)
        about = "Duration of reconciles."
        self._seconds = Histogram(
            "reconcile_time_seconds", about, buckets=RECONCILE_BUCKETS, **runtime
        )
        self._retries = Counter("retries", "Retries after a failure.", **queue)
        self.adds = Counter("adds", "Keys added to the queue.", **queue)
        self._depth = Gauge("depth", "Keys that are ready and wait for a worker.", **queue)
        self._waited = Histogram(
            "queue_duration_seconds", "Wait of ready keys.", buckets=QUEUE_BUCKETS, **queue
        )
        self._worked = Histogram(
            "work_duration_seconds", "Processing time of keys.", buckets=QUEUE_BUCKETS, **queue
        )
        self._unfinished = Gauge(
            "unfinished_work_seconds", "Sum of the time that unfinished work has taken.", **queue
        )
        self._longest = Gauge(
            "longest_running_processor_seconds", "Time of the longest unfinished work.", **queue
        )
        labels, about = ["kind", "phase"], "Custom resources by phase."
        self.resources = Gauge("gatewright_resources", about, labels, registry=registry)
        about = "1 while a kind's CustomResourceDefinition lacks fields of the controller's status."
        self.outdated_crds = Gauge("gatewright_outdated_crd", about, ["kind"], registry=registry)
        about = "1 for the Lease of each older installation whose objects this one does not write."
        self.older_installations = Gauge(
            "gatewright_older_installation", about, ["lease"], registry=registry
        )
        labels, about = ["code", "method", "host"], "Requests to the API server."
        self._requests = Counter("rest_client_requests", about, labels, registry=registry)
        self.leading = Gauge(
            "leader_election_master_status", "1 while leading.", ["name"], registry=registry
        )
        self._counters: dict[str, Counter] = {}

    def follow(self, name: str, queue: WorkQueue[ReconcileRequest], workers: int) -> None:
        """Create all series of a controller; its gauges are read from its queue."""

        def list_seconds() -> list[float]:
            now = time.monotonic()
            return [now - since for since in list(queue.processing.values())]

        for result in RESULTS:
            self._total.labels(name, result)
        histograms = (self._seconds, self._waited, self._worked)
        for metric in (self._errors, self._retries, *self._by_outcome.values(), *histograms):
            metric.labels(name)
        self._workers.labels(name).set(workers)
        self._depth.labels(name).set_function(lambda: len(queue))
        self._active.labels(name).set_function(lambda: len(queue.processing))
        self._unfinished.labels(name).set_function(lambda: sum(list_seconds()))
        self._longest.labels(name).set_function(lambda: max(list_seconds(), default=0.0))

    def count_reconcile(
        self, name: str, outcome: ReconcileOutcome, seconds: float, waited: float
    ) -> None:
        """Count a reconcile of a controller."""
        failed = outcome not in ("success", "requeue", "requeue_after")
        self._total.labels(name, "error" if failed else outcome).inc()
        self._seconds.labels(name).observe(seconds)
        self._worked.labels(name).observe(seconds)
        self._waited.labels(name).observe(waited)
        if failed:
            self._errors.labels(name).inc()
        if failed and outcome != "terminal_error":
            self._retries.labels(name).inc()
        if outcome in self._by_outcome:
            self._by_outcome[outcome].labels(name).inc()

    def count_response(self, host: str, method: str, code: int) -> None:
        """Count an API server response; code 0 means none arrived."""
        self._requests.labels(str(code) if code else "<error>", method, host).inc()

    def counter(self, name: str, about: str) -> Counter:
        """Return the counter of this name, which several kinds may share."""
        if name not in self._counters:
            self._counters[name] = Counter(name, about, registry=self.registry)
        return self._counters[name]


class KindMetrics:
    """The metrics of one kind, under its own prefix."""

    def __init__(self, kind: str, metrics: ControllerMetrics, counts: Counts | None = None) -> None:
        own: Any = {"namespace": kind.lower(), "registry": metrics.registry}
        labels = ["namespace", "name"] if metrics.per_object else []
        about = "Duration of reconciles."
        self._kind = kind
        self._per_object = metrics.per_object
        self._total = Counter("reconcile", "Reconciles by result.", [*labels, "result"], **own)
        self._seconds = Histogram(
            "reconcile_duration_seconds", about, labels, buckets=KIND_BUCKETS, **own
        )
        about = "Time from creation to first being ready."
        self._creation = Histogram(
            "creation_duration_seconds", about, ["namespace"], buckets=CREATION_BUCKETS, **own
        )
        self._errors = Counter("errors", "Failed reconciles.", ["type"], **own)
        for type in ("retryable", "permanent"):
            self._errors.labels(type)
        self._resources = metrics.resources
        self._outdated_crd = metrics.outdated_crds.labels(kind)
        self._phases: dict[ReconcileRequest, str] = {}
        self._counts = counts
        self._changes = metrics.counter(counts.name, counts.about) if counts else None

    def count_reconcile(
        self, request: ReconcileRequest, outcome: ReconcileOutcome, seconds: float
    ) -> None:
        """Count a reconcile."""
        labels = self._labels(request)
        successes = {"success": "success", "requeue": "requeue", "requeue_after": "requeue"}
        result = successes.get(outcome, "error")
        self._total.labels(*labels, result).inc()
        (self._seconds.labels(*labels) if labels else self._seconds).observe(seconds)
        if result == "error":
            self._errors.labels("permanent" if outcome == "terminal_error" else "retryable").inc()

    def status(self, owner: Owner, status: JsonObject, now: datetime) -> None:
        """Record the new status of an object, whether it was written or not."""
        before, ready = owner.status, is_ready(status)
        self._phase(owner.request, status.get("phase") or ("Ready" if ready else "NotReady"))
        counted = self._counts and self._counts.field
        if self._changes and counted and status.get(counted) not in (None, before.get(counted)):
            self._changes.inc()
        if ready and not was_ready(ready_in(before)):
            age = now - datetime.fromisoformat(owner.object["metadata"]["creationTimestamp"])
            self._creation.labels(owner.request.namespace or "").observe(age.total_seconds())

    def outdated_crd(self, is_outdated: bool) -> None:
        """Record whether the kind's CRD lacks fields of its status."""
        self._outdated_crd.set(is_outdated)

    def forget(self, request: ReconcileRequest) -> None:
        """Remove the series of a deleted object."""
        self._phase(request, None)
        if labels := self._labels(request):
            for result in KIND_RESULTS:
                self._total.remove(*labels, result)
            self._seconds.remove(*labels)

    def _labels(self, request: ReconcileRequest) -> tuple[str, ...]:
        return (request.namespace or "", request.name) if self._per_object else ()

    def _phase(self, request: ReconcileRequest, phase: str | None) -> None:
        """Set the phase of an object; None after its deletion."""
        before = self._phases.pop(request, None)
        if phase is not None:
            self._phases[request] = phase
            self._resources.labels(self._kind, phase).inc()
        if before is not None:
            self._resources.labels(self._kind, before).dec()
