"""How often the API server was asked, and what it answered: plain numbers, at half the cost of a library's Counter."""

from collections import Counter
from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector


class Requests(Collector):
    """The requests of a process by code, method and host."""

    def __init__(self) -> None:
        self.answers = Counter[tuple[int, str, str]]()
        """By the status code (0 without an answer), the method and the host."""

    def collect(self) -> Iterator[CounterMetricFamily]:
        """Yield what was counted so far."""
        family = CounterMetricFamily(
            "rest_client_requests", "Requests to the API server.", labels=["code", "method", "host"]
        )
        for (code, method, host), count in self.answers.copy().items():
            family.add_metric([str(code) if code else "<error>", method, host], count)
        yield family
