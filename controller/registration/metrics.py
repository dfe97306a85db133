"""Metrics of the registration (prometheus_client types)."""

from prometheus_client import CollectorRegistry, Gauge


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
