"""Metrics of the webhook. Labels have few values, none of them from a client."""

from collections import Counter as Count
from collections.abc import Set
from functools import cache, partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

LATENCY_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
HOOKS = ("validate", "mutate", "convert")  # values of the label "webhook"


class WebhookMetrics:
    """The collectors of the webhook; the first ones have controller-runtime's names.

    The metrics of a review are cached by their label values: `labels()` costs several times as much
    as an increment.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        counter, gauge = partial(Counter, registry=registry), partial(Gauge, registry=registry)
        self.requests = cache(
            counter(
                "controller_runtime_webhook_requests",
                "Admission requests by HTTP status code.",
                ["webhook", "code"],
            ).labels
        )
        self.latency = cache(
            Histogram(
                "controller_runtime_webhook_latency_seconds",
                "Time from the last byte of an admission request to its answer.",
                ["webhook"],
                buckets=LATENCY_BUCKETS,
                registry=registry,
            ).labels
        )
        self.in_flight: Count[str] = Count()
        in_flight = gauge(
            "controller_runtime_webhook_requests_in_flight",
            "Admission requests being served now.",
            ["webhook"],
        )
        for hook in HOOKS:
            in_flight.labels(hook).set_function(partial(self.in_flight.__getitem__, hook))
        self.certificate_reads = counter(
            "certwatcher_read_certificate", "Readings of the serving certificate."
        )
        self.certificate_errors = counter(
            "certwatcher_read_certificate_errors",
            "Readings of the serving certificate that gave no usable pair.",
        )
        self.certificate_expiry = gauge(
            "gatewright_serving_certificate_expiry_timestamp_seconds",
            "When the certificate being served expires.",
        )
        self.reviews = cache(
            counter(
                "gatewright_admission_reviews",
                "Answered reviews by what was decided.",
                ["webhook", "operation", "verdict"],
            ).labels
        )
        self._findings = counter(
            "gatewright_policy_findings",
            "Requests that a policy found fault with, or failed on.",
            ["policy", "finding"],
        )
        self.findings = cache(self._findings.labels)
        self.policies = gauge("gatewright_policies", "Policies in force.")
        self.policy_set = gauge(
            "gatewright_policy_set_info",
            "The version of the policy set in force: the same where the same policies are.",
            ["version"],
        )
        self.policy_reload_errors = counter(
            "gatewright_policy_reload_errors",
            "Changed policy sets that could not be used; the set before stayed in force.",
        )
        self.policy_generation = gauge(
            "gatewright_policy_generation",
            "Generation of each policy object that is in force here.",
            ["kind", "name"],
        )
        self.connections = gauge("gatewright_webhook_connections", "Open connections.")
        self.connections_cut = counter(
            "gatewright_webhook_connections_cut",
            "Connections that were cut: a slow client, or too many at once.",
            ["reason"],
        )

    def forget(self, policies: Set[str]) -> None:
        """Remove the findings of policies that are no longer in force."""
        for metric in self._findings.collect():
            for sample in metric.samples:
                if sample.labels["policy"] in policies:
                    self._findings.remove(sample.labels["policy"], sample.labels["finding"])
        self.findings.cache_clear()
