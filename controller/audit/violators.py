"""The objects with violations of one audit: all are counted, the worst are kept. Pure."""

from bisect import insort
from collections import Counter
from collections.abc import Sequence

from controller.audit.results import ObjectResults, ReportResult

MAX_REPORTS = 5_000
MAX_RESULTS = 50  # of one report; the summary counts all
MAX_TOTAL = 30_000  # results of all reports: about 40 MB in etcd at most
LEVELS = ("fail", "error", "warn")  # the worst first
SEVERITIES = ("critical", "high", "medium", "low", "info")  # a policy in code may have others

# The worst result, then the place, so that each audit keeps the same ones.
ViolatorRank = tuple[tuple[int, int], str, str, str, str]


class Violators:
    """The objects with violations; memory is bounded however many there are."""

    def __init__(self, max_reports: int = MAX_REPORTS) -> None:
        """Take how many objects are kept."""
        self.max_reports = max_reports
        self.number = 0
        """The number of objects with violations."""
        self.violations = Counter[tuple[str, str, str]]()
        """The number of violations by policy, namespace and severity."""
        self.objects = Counter[str]()
        """The number of objects with violations of each policy."""
        self.examples: dict[str, ReportResult] = {}
        """A result of each policy."""
        self._worst: list[tuple[ViolatorRank, ObjectResults]] = []
        self._results = 0

    @property
    def worst(self) -> list[ObjectResults]:
        """The kept ones, the worst first."""
        return [judged for _, judged in self._worst]

    def add(self, judged: ObjectResults) -> None:
        """Count an object, and keep it if it is one of the worst."""
        self.number += 1
        self.violations.update(
            (result.policy, judged.namespace, result.severity) for result in judged.results
        )
        examples = {each.policy: each for each in judged.results}
        self.objects.update(examples.keys())
        self.examples = examples | self.examples
        insort(self._worst, (_rank(judged), judged))
        self._results += min(len(judged.results), MAX_RESULTS)
        while len(self._worst) > self.max_reports or self._results > MAX_TOTAL:
            _, dropped = self._worst.pop()
            self._results -= min(len(dropped.results), MAX_RESULTS)


def _rank(judged: ObjectResults) -> ViolatorRank:
    worst = min(
        (_place(result.result, LEVELS), _place(result.severity, SEVERITIES))
        for result in judged.results
    )
    return worst, judged.namespace, judged.kind, judged.name, judged.uid


def _place(value: str, order: Sequence[str]) -> int:
    """Return the place of a value; one that is not known comes last."""
    return order.index(value) if value in order else len(order)
