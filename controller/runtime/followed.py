"""What is counted at every reconcile of each controller, and read from its queue when somebody asks.

Plain numbers: with the counters and histograms of prometheus_client counting costs four times as much.
"""

import time
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from controller.runtime.queue import WorkQueue
from controller.runtime.result import Outcome, Request

# fmt: off
RECONCILE_BUCKETS = (
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0,
    1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60,
)
# fmt: on
QUEUE_BUCKETS = tuple(1e-8 * 10**power for power in range(12))


class Distribution:
    """How many observations were up to each bound, and their sum."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = (*map(float, bounds), float("inf"))
        self._counts = [0] * len(self._bounds)
        self.sum = 0.0

    def observe(self, seconds: float) -> None:
        """Count one."""
        self._counts[bisect_left(self._bounds, seconds)] += 1
        self.sum += seconds

    def buckets(self) -> list[tuple[str, float]]:
        """Return each bound, and how many were up to it."""
        return list(zip(map(floatToGoString, self._bounds), accumulate(self._counts), strict=True))


class Followed:
    """One controller: its queue, how its reconciles ended, and how long keys waited and were worked on."""

    def __init__(self, queue: WorkQueue[Request]) -> None:
        self.queue = queue
        self.results = {"success": 0, "error": 0, "requeue": 0, "requeue_after": 0}
        self.seconds = Distribution(RECONCILE_BUCKETS)
        self.worked = Distribution(QUEUE_BUCKETS)
        self.waited = Distribution(QUEUE_BUCKETS)

    def reconciled(self, outcome: Outcome, seconds: float, waited: float) -> None:
        """Count a reconcile."""
        self.results["error" if outcome == "terminal_error" else outcome] += 1
        self.seconds.observe(seconds)
        self.worked.observe(seconds)
        self.waited.observe(waited)


class AllFollowed(Collector):
    """The controllers of a process by their names."""

    def __init__(self) -> None:
        self.by_name: dict[str, Followed] = {}

    def collect(self) -> Iterator[Metric]:
        """Yield what was counted so far, and what the queues hold now."""
        total = CounterMetricFamily("controller_runtime_reconcile", "Reconciles.", labels=["controller", "result"])
        seconds = HistogramMetricFamily(
            "controller_runtime_reconcile_time_seconds", "Duration of reconciles.", labels=["controller"]
        )
        active = GaugeMetricFamily("controller_runtime_active_workers", "Workers at work.", labels=["controller"])
        adds = CounterMetricFamily("workqueue_adds", "Additions to the queue.", labels=["name"])
        depth = GaugeMetricFamily("workqueue_depth", "Keys that wait.", labels=["name"])
        waited = HistogramMetricFamily("workqueue_queue_duration_seconds", "Wait of ready keys.", labels=["name"])
        worked = HistogramMetricFamily("workqueue_work_duration_seconds", "Work on keys.", labels=["name"])
        unfinished = GaugeMetricFamily(
            "workqueue_unfinished_work_seconds", "Sum of the time that unfinished work took so far.", labels=["name"]
        )
        longest = GaugeMetricFamily(
            "workqueue_longest_running_processor_seconds", "Longest of the same.", labels=["name"]
        )
        for name, each in self.by_name.items():
            for result, count in each.results.items():
                total.add_metric([name, result], count)
            for family, found in ((seconds, each.seconds), (waited, each.waited), (worked, each.worked)):
                family.add_metric([name], found.buckets(), found.sum)
            now = time.monotonic()
            taken = [now - since for since in each.queue.processing.values()]
            active.add_metric([name], len(taken))
            adds.add_metric([name], each.queue.added)
            depth.add_metric([name], len(each.queue))
            unfinished.add_metric([name], sum(taken))
            longest.add_metric([name], max(taken, default=0.0))
        yield from (total, seconds, active, adds, depth, waited, worked, unfinished, longest)
