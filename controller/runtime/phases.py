"""How many custom resources are in which phase, in plain numbers: a first pass counts each."""

from collections import Counter
from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from controller.runtime.result import Request


class Phases:
    """The objects of one kind; a phase that any was ever in stays, with a zero."""

    def __init__(self) -> None:
        self.numbers: Counter[str] = Counter()
        self._phases: dict[Request, str] = {}

    def now(self, request: Request, phase: str | None) -> None:
        """Take the phase an object is in; None when it is gone."""
        before = self._phases.get(request)
        if before == phase:
            return
        if before is not None:
            self.numbers[before] -= 1
            del self._phases[request]
        if phase is not None:
            self._phases[request] = phase
            self.numbers[phase] += 1


class Resources(Collector):
    """The phases of every kind."""

    def __init__(self) -> None:
        self._kinds: dict[str, Phases] = {}

    def of_kind(self, kind: str) -> Phases:
        """Count the objects of a kind from now on."""
        return self._kinds.setdefault(kind, Phases())

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the numbers as they are now."""
        family = GaugeMetricFamily("gatewright_resources", "Custom resources by phase.", labels=["kind", "phase"])
        for kind, phases in self._kinds.items():
            for phase, number in phases.numbers.items():
                family.add_metric([kind, phase], number)
        yield family
