"""How the reconciles of each object of a kind ended, and how long they took: a row of numbers an object.

A large cluster has tens of thousands of these; prometheus_client would take ten times the memory for each.
"""

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate

from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

RESULTS = ("success", "requeue", "error")
BUCKETS = (0.1, 0.5, 1.0, 2.5, 5.0, 10.0, float("inf"))
BOUNDS = tuple(map(floatToGoString, BUCKETS))


class ReconcileSeries(Collector):
    """A counter and a histogram, with the same labels."""

    def __init__(self, prefix: str, labels: Sequence[str]) -> None:
        self._prefix = prefix
        self._labels = labels
        self._rows: dict[tuple[str, ...], array[float]] = {}

    def add(self, labels: tuple[str, ...], result: str, seconds: float) -> None:
        """Count one reconcile."""
        row = self._rows.get(labels)
        if row is None:
            row = self._rows[labels] = array("d", bytes(8 * (1 + len(RESULTS) + len(BUCKETS))))
        row[0] += seconds
        row[1 + RESULTS.index(result)] += 1
        row[1 + len(RESULTS) + bisect_left(BUCKETS, seconds)] += 1

    def forget(self, labels: tuple[str, ...]) -> None:
        """Let the series with these labels go."""
        self._rows.pop(labels, None)

    def collect(self) -> Iterator[CounterMetricFamily | HistogramMetricFamily]:
        """Yield both, with what was counted so far."""
        total = CounterMetricFamily(f"{self._prefix}_reconcile", "Reconciles.", labels=[*self._labels, "result"])
        seconds = HistogramMetricFamily(
            f"{self._prefix}_reconcile_duration_seconds", "Their duration.", labels=self._labels
        )
        for labels, (spent, *counts) in self._rows.items():
            for result, count in zip(RESULTS, counts, strict=False):
                if count:
                    total.add_metric([*labels, result], count)
            up_to = accumulate(counts[len(RESULTS) :])
            seconds.add_metric(labels, list(zip(BOUNDS, up_to, strict=True)), spent)
        yield from (total, seconds)
