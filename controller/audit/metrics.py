"""Metrics of the audit (prometheus_client types)."""

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Gauge

from controller.audit.judge import Judged
from controller.audit.reports import counts

MAX_SERIES = 1_000
OTHER = "other"  # the labels of what exceeds MAX_SERIES


class AuditMetrics:
    """Gauges of the last finished audit."""

    def __init__(self, registry: CollectorRegistry) -> None:
        """Register them."""
        self._violations = Gauge(
            "gatewright_audit_violations",
            f"Violations found by the last audit; series beyond {MAX_SERIES} are summed as {OTHER}.",
            ["policy", "namespace", "severity"],
            registry=registry,
        )
        self._duration = Gauge(
            "gatewright_audit_duration_seconds", "Duration of the last finished audit.", registry=registry
        )
        self._objects = Gauge("gatewright_audit_objects", "Objects judged by the last audit.", registry=registry)
        self._success = Gauge(
            "gatewright_audit_last_success_timestamp_seconds",
            "Unix time at which an audit last read everything and wrote its reports.",
            registry=registry,
        )

    def finished(self, judged: Iterable[Judged], objects: int, seconds: float) -> None:
        """Show the results of an audit that took `seconds`."""
        self._violations.clear()
        for index, (policy, namespace, severity, number) in enumerate(counts(judged)):
            labels = (policy, namespace, severity) if index < MAX_SERIES else (OTHER, OTHER, OTHER)
            self._violations.labels(*labels).inc(number)
        self._objects.set(objects)
        self._duration.set(seconds)

    def succeeded(self, timestamp: float) -> None:
        """Remember the Unix time of an audit without any failure."""
        self._success.set(timestamp)
