"""What the webhook counts. Labels have few values: nothing that a client sends becomes one."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

HOOKS = ("validate", "mutate", "convert")  # values of the label "webhook"
LATENCY_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)

T = TypeVar("T")


class Children(dict[tuple[str, ...], T]):
    """The children of a metric by the values of its labels: `labels()` costs several times what counting does."""

    def __init__(self, labels: Callable[..., T]) -> None:
        self._labels = labels

    def __missing__(self, values: tuple[str, ...]) -> T:
        """Return a child that is not used yet."""
        child = self[values] = self._labels(*values)
        return child


class Metrics:
    """The collectors of the webhook; the names of the first ones are those of controller-runtime."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.requests = Counter(
            "controller_runtime_webhook_requests",
            "Admission requests by HTTP status code.",
            ["webhook", "code"],
            registry=registry,
        )
        self.requests_of = Children(self.requests.labels)
        self.latency = Histogram(
            "controller_runtime_webhook_latency_seconds",
            "Time from the last byte of an admission request to its answer.",
            ["webhook"],
            buckets=LATENCY_BUCKETS,
            registry=registry,
        )
        self.latency_of = Children(self.latency.labels)
        self.in_flight = Gauge(
            "controller_runtime_webhook_requests_in_flight",
            "Admission requests being served now.",
            ["webhook"],
            registry=registry,
        )
        self.in_flight_now = dict.fromkeys(HOOKS, 0)
        for hook in self.in_flight_now:
            self.in_flight.labels(hook).set_function(partial(self.in_flight_now.__getitem__, hook))
        self.certificate_reads = Counter(
            "certwatcher_read_certificate",
            "Readings of the serving certificate.",
            registry=registry,
        )
        self.certificate_errors = Counter(
            "certwatcher_read_certificate_errors",
            "Readings of the serving certificate that gave no usable pair.",
            registry=registry,
        )
        self.certificate_expiry = Gauge(
            "gatewright_serving_certificate_expiry_timestamp_seconds",
            "When the certificate being served expires.",
            registry=registry,
        )
        self.reviews = Counter(
            "gatewright_admission_reviews",
            "Answered reviews by what was decided.",
            ["webhook", "operation", "verdict"],
            registry=registry,
        )
        self.reviews_of = Children(self.reviews.labels)
        self.findings = Counter(
            "gatewright_policy_findings",
            "Requests that a policy found fault with, or failed on.",
            ["policy", "finding"],
            registry=registry,
        )
        self.findings_of = Children(self.findings.labels)
        self.policies = Gauge(
            "gatewright_policies",
            "Policies in force.",
            registry=registry,
        )
        self.policy_reload_errors = Counter(
            "gatewright_policy_reload_errors",
            "Changed policy sets that could not be used; the set before stayed in force.",
            registry=registry,
        )
        self.policy_generation = Gauge(
            "gatewright_policy_generation",
            "Generation of each policy object that is in force here.",
            ["kind", "name"],
            registry=registry,
        )
        self.connections = Gauge(
            "gatewright_webhook_connections",
            "Open connections.",
            registry=registry,
        )
        self.connections_cut = Counter(
            "gatewright_webhook_connections_cut",
            "Connections that were cut: a slow client, or too many at once.",
            ["reason"],
            registry=registry,
        )

    def forget_generation(self, kind: str, name: str) -> None:
        """Show a policy object no more."""
        with suppress(KeyError):
            self.policy_generation.remove(kind, name)
