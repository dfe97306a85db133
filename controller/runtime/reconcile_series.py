"""How the reconciles of each object of a kind ended, and how long they took: a row of numbers an object.

A large cluster has tens of thousands of these; prometheus_client would take ten times the memory for each.
"""

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate

from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample
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

    def collect(self) -> Iterator[Metric]:
        """Yield both, with what was counted so far; their samples are made when somebody writes them down."""
        total = CounterMetricFamily(f"{self._prefix}_reconcile", "Reconciles.", labels=[*self._labels, "result"])
        seconds = HistogramMetricFamily(
            f"{self._prefix}_reconcile_duration_seconds", "Their duration.", labels=self._labels
        )
        rows = [(dict(zip(self._labels, labels, strict=True)), row[:]) for labels, row in self._rows.items()]
        total.samples = _Samples(rows, total.name, _counts)
        seconds.samples = _Samples(rows, seconds.name, _buckets)
        yield from (total, seconds)


Row = tuple[dict[str, str], "array[float]"]


class _Samples(list[Sample]):
    """The samples of rows that change no more, made one by one as they are asked for."""

    def __init__(self, rows: Sequence[Row], name: str, of_row: Callable[[str, Row], Iterator[Sample]]) -> None:
        super().__init__()
        self._rows = rows
        self._name = name
        self._of_row = of_row

    def __iter__(self) -> Iterator[Sample]:
        for row in self._rows:
            yield from self._of_row(self._name, row)


def _counts(name: str, row: Row) -> Iterator[Sample]:
    labels, numbers = row
    for result, count in zip(RESULTS, numbers[1:], strict=False):
        if count:
            yield Sample(f"{name}_total", {**labels, "result": result}, count)


def _buckets(name: str, row: Row) -> Iterator[Sample]:
    labels, (spent, *counts) = row
    up_to = list(accumulate(counts[len(RESULTS) :]))
    for bound, count in zip(BOUNDS, up_to, strict=True):
        yield Sample(f"{name}_bucket", {**labels, "le": bound}, count)
    yield Sample(f"{name}_count", labels, up_to[-1])
    yield Sample(f"{name}_sum", labels, spent)
