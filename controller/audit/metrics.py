"""Metrics of the audit (prometheus_client types)."""

from collections.abc import Mapping
from datetime import datetime, timedelta

from prometheus_client import CollectorRegistry, Gauge

MAX_SERIES = 1_000
OTHER = "other"  # the label value for series beyond MAX_SERIES


class AuditMetrics:
    """Gauges of the last finished audit."""

    def __init__(self, registry: CollectorRegistry, interval: timedelta) -> None:
        """Register them; `interval` is the pause between two audits."""
        self._violations = Gauge(
            "gatewright_audit_violations",
            (
                f"Violations found by the last audit; series beyond {MAX_SERIES} are summed as "
                f"{OTHER}."
            ),
            ["policy", "namespace", "severity"],
            registry=registry,
        )
        self._duration = Gauge(
            "gatewright_audit_duration_seconds",
            "Duration of the last finished audit.",
            registry=registry,
        )
        self._objects = Gauge(
            "gatewright_audit_objects", "Objects judged by the last audit.", registry=registry
        )
        Gauge(
            "gatewright_audit_interval_seconds", "Pause between two audits.", registry=registry
        ).set(interval.total_seconds())
        self._success = Gauge(
            "gatewright_audit_last_success_timestamp_seconds",
            "Unix time at which an audit last read everything and wrote its reports.",
            registry=registry,
        )

    def set_violations(self, violations: Mapping[tuple[str, str, str], int], objects: int) -> None:
        """Set the violations by policy, namespace and severity, found in `objects` objects."""
        self._violations.clear()
        ordered = sorted(violations.items(), key=lambda item: (-item[1], item[0]))
        for index, (labels, number) in enumerate(ordered):
            self._violations.labels(*(labels if index < MAX_SERIES else (OTHER, OTHER, OTHER))).inc(
                number
            )
        self._objects.set(objects)

    def record_end(self, seconds: float, succeeded: datetime | None) -> None:
        """Record the end of an audit that took `seconds`.

        `succeeded` is its time, or None if something failed.
        """
        self._duration.set(seconds)
        if succeeded is not None:
            self._success.set(succeeded.timestamp())
