"""What all controllers count, under the names that controller-runtime has for it."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from controller.runtime.queue import WorkQueue
from controller.runtime.result import Outcome, Request

# fmt: off
RECONCILE_BUCKETS = (
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0,
    1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60,
)
# fmt: on
QUEUE_BUCKETS = tuple(1e-8 * 10**power for power in range(12))


@dataclass(frozen=True, slots=True)
class _Series:
    """What is counted at each reconcile of one controller."""

    waited: Histogram
    worked: Histogram
    seconds: Histogram
    total: dict[str, Counter]


class Metrics:
    """The collectors of all controllers of a process."""

    def __init__(self, registry: CollectorRegistry, *, per_object: bool = True) -> None:
        """`per_object`: a kind's metrics carry the labels `namespace` and `name`; large clusters turn that off."""
        self.registry = registry
        self.per_object = per_object
        reconciles, queue = "controller_runtime_", "workqueue_"
        self._total = Counter(f"{reconciles}reconcile", "Reconciles.", ["controller", "result"], registry=registry)
        self._errors = Counter(f"{reconciles}reconcile_errors", "Failures.", ["controller"], registry=registry)
        self._terminal = Counter(
            f"{reconciles}terminal_reconcile_errors", "Permanent failures.", ["controller"], registry=registry
        )
        self._timeouts = Counter(
            f"{reconciles}reconcile_timeouts", "Reconciles that took too long.", ["controller"], registry=registry
        )
        self._panics = Counter(
            f"{reconciles}reconcile_panics",
            "Reconciles that met a mistake in the code.",
            ["controller"],
            registry=registry,
        )
        self._seconds = Histogram(
            f"{reconciles}reconcile_time_seconds",
            "Duration of reconciles.",
            ["controller"],
            buckets=RECONCILE_BUCKETS,
            registry=registry,
        )
        self._workers = Gauge(f"{reconciles}max_concurrent_reconciles", "Workers.", ["controller"], registry=registry)
        self._retries = Counter(f"{queue}retries", "Retries after a failure.", ["name"], registry=registry)
        self._waited = Histogram(
            f"{queue}queue_duration_seconds", "Wait of ready keys.", ["name"], buckets=QUEUE_BUCKETS, registry=registry
        )
        self._worked = Histogram(
            f"{queue}work_duration_seconds", "Work on keys.", ["name"], buckets=QUEUE_BUCKETS, registry=registry
        )
        self._requests = Counter(
            "rest_client_requests", "Requests to the API server.", ["code", "method", "host"], registry=registry
        )
        self._leading = Gauge("leader_election_master_status", "1 while leading.", ["name"], registry=registry)
        self.resources = Gauge(
            "gatewright_resources", "Custom resources by phase.", ["kind", "phase"], registry=registry
        )
        self._counters: dict[str, Counter] = {}
        self._series: dict[str, _Series] = {}
        self._queues = Queues()
        registry.register(self._queues)

    def follow(self, name: str, queue: WorkQueue[Request], workers: int) -> None:
        """Count for a controller from now on."""
        results = ("success", "error", "requeue", "requeue_after")
        self._series[name] = _Series(
            self._waited.labels(name),
            self._worked.labels(name),
            self._seconds.labels(name),
            {result: self._total.labels(name, result) for result in results},
        )
        for counter in (self._errors, self._terminal, self._timeouts, self._panics):
            counter.labels(name)
        self._workers.labels(name).set(workers)
        self._queues.followed[name] = queue

    def reconciled(self, name: str, outcome: Outcome, seconds: float, waited: float) -> None:
        """Count a reconcile of a controller."""
        series = self._series[name]
        series.total["error" if outcome == "terminal_error" else outcome].inc()
        if outcome in ("error", "terminal_error"):
            self._errors.labels(name).inc()
            (self._retries if outcome == "error" else self._terminal).labels(name).inc()
        series.seconds.observe(seconds)
        series.worked.observe(seconds)
        series.waited.observe(waited)

    def failed(self, name: str, *, in_time: bool, expected: bool) -> None:
        """Count a failure of a sort of its own: too late, or an exception that nobody meant to raise."""
        if not in_time:
            self._timeouts.labels(name).inc()
        elif not expected:
            self._panics.labels(name).inc()

    def requests_to(self, host: str) -> Callable[[str, int, float], None]:
        """Return what a client calls after each answer."""

        @cache
        def requests(method: str, code: int) -> Counter:
            return self._requests.labels(str(code) if code else "<error>", method, host)

        def on_response(method: str, code: int, seconds: float) -> None:
            del seconds
            requests(method, code).inc()

        return on_response

    def counter(self, name: str, about: str) -> Counter:
        """Return the counter of this name, which several kinds may share."""
        if name not in self._counters:
            self._counters[name] = Counter(name, about, registry=self.registry)
        return self._counters[name]

    def leading(self, name: str, *, leads: bool) -> None:
        """Say whether this process leads."""
        self._leading.labels(name).set(leads)


class Queues(Collector):
    """What is read from the work queues when somebody asks."""

    def __init__(self) -> None:
        self.followed: dict[str, WorkQueue[Request]] = {}

    def collect(self) -> Iterator[CounterMetricFamily | GaugeMetricFamily]:
        """Yield additions, depth and unfinished work of each queue."""
        adds = CounterMetricFamily("workqueue_adds", "Additions to the queue.", labels=["name"])
        depth = GaugeMetricFamily("workqueue_depth", "Keys that wait.", labels=["name"])
        unfinished = GaugeMetricFamily(
            "workqueue_unfinished_work_seconds", "Sum of the time that unfinished work took so far.", labels=["name"]
        )
        longest = GaugeMetricFamily(
            "workqueue_longest_running_processor_seconds", "Longest of the same.", labels=["name"]
        )
        active = GaugeMetricFamily("controller_runtime_active_workers", "Workers at work.", labels=["controller"])
        for name, queue in self.followed.items():
            now = time.monotonic()
            taken = [now - since for since in queue.processing.values()]
            adds.add_metric([name], queue.added)
            depth.add_metric([name], len(queue))
            unfinished.add_metric([name], sum(taken))
            longest.add_metric([name], max(taken, default=0.0))
            active.add_metric([name], len(taken))
        yield from (adds, depth, unfinished, longest, active)
