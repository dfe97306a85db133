"""Metrics of the registration (prometheus_client types)."""

from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge

MAX_SERIES = 1_000
STATUS_VALUES: Mapping[str, float] = {"True": 1.0, "False": 0.0, "Unknown": -1.0}


class RegistrationMetrics:
    """Gauges of the webhooks that are registered."""

    def __init__(self, registry: CollectorRegistry) -> None:
        """Register them."""
        self.webhooks = Gauge(
            "gatewright_registration_webhooks",
            "Webhooks in the configuration that the policies in force need.",
            ["kind"],
            registry=registry,
        )
        self.widened = Gauge(
            "gatewright_registration_widened_policies",
            "Policies for which requests reach the webhook from more namespaces than they select.",
            registry=registry,
        )


class EnforcementMetrics:
    """Whether policies are enforced, and the dry runs by which this is measured."""

    def __init__(self, registry: CollectorRegistry) -> None:
        """Register them."""
        self.enforced = Gauge(
            "gatewright_policy_enforced",
            "Whether the API server denies what a policy in force denies: 1, 0, or -1 if unknown; "
            f"of the first {MAX_SERIES} policies.",
            ["policy"],
            registry=registry,
        )
        self.requests = Counter(
            "gatewright_enforcement_requests",
            "Dry runs by which enforcement is measured, by the status that follows.",
            ["status"],
            registry=registry,
        )
        self._titles: set[str] = set()

    def set(self, title: str, status: str) -> None:
        """Set the gauge of a policy."""
        if title in self._titles or len(self._titles) < MAX_SERIES:
            self._titles.add(title)
            self.enforced.labels(title).set(STATUS_VALUES[status])

    def forget(self, title: str) -> None:
        """Remove the gauge of a policy that is not in force any more."""
        if title in self._titles:
            self._titles.remove(title)
            self.enforced.remove(title)
