"""Records a verdict in metrics, and logs it unless it is a plain allow."""

import logging
from collections.abc import Mapping
from typing import Any

from webhook.engine import Attributes, Outcome, Verdict
from webhook.server.metrics import WebhookMetrics

log = logging.getLogger("gatewright.webhook")


def record(
    metrics: WebhookMetrics, hook: str, attributes: Attributes, verdict: Verdict, seconds: float
) -> None:
    """Record the verdict of one review."""
    findings = {} if verdict.is_plain else _findings(verdict)
    decision = _decision(verdict, findings)
    metrics.reviews(hook, attributes.operation, decision).inc()
    if not findings:
        return
    for policy_and_finding in findings.items():
        metrics.findings(*policy_and_finding).inc()
    fields = fields_of(attributes) | {
        "webhook": hook,
        "policies": findings,
        "ms": round(seconds * 1000, 2),
    }
    log.info(decision, extra={"fields": fields})


def fields_of(attributes: Attributes) -> dict[str, Any]:
    """Return the log fields of a request, with only the name of the object."""
    return {
        "uid": attributes.uid,
        "operation": attributes.operation,
        "kind": attributes.kind,
        "subresource": attributes.subresource,
        "namespace": attributes.namespace,
        "name": attributes.name,
        "user": attributes.username,
        "dry_run": attributes.dry_run,
    }


def _decision(verdict: Verdict, findings: Mapping[str, str]) -> str:
    if not verdict.allowed:
        is_judged = any(outcome.error is None for outcome in verdict.denials)
        return "denied" if is_judged else "error"
    if findings:
        return "warned"
    return "patched" if verdict.operations else "allowed"


def _findings(verdict: Verdict) -> dict[str, str]:
    """Return the findings of each policy as text."""
    return {
        outcome.policy: finding for outcome in verdict.outcomes if (finding := _finding(outcome))
    }


def _finding(outcome: Outcome) -> str | None:
    if outcome.malformed is not None:
        return "malformed"
    if outcome.error is not None:
        return "error"
    if not outcome.violations:
        return "tolerated" if outcome.tolerated else None
    return "denied" if outcome.denies else "warned" if "Warn" in outcome.actions else "audited"
