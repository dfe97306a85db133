"""The report of doctor: findings as results for the output formats."""

from collections.abc import Mapping, Sequence

from config.printable import printable
from gatewright.outputs import (
    InputProblem,
    PolicyInfo,
    Report,
    ReportedViolation,
    SourceLocation,
    SubjectResult,
)
from gatewright.tools.doctor.callers import callers
from gatewright.tools.doctor.hazards import CRITICAL, NOTE, WARNING, Hazard
from gatewright.tools.doctor.models import (
    ClusterBinding,
    ClusterObject,
    ClusterPolicy,
    WebhookConfiguration,
)
from gatewright.tools.doctor.state import ClusterState
from gatewright.tools.doctor.unjudged import has_rules, note_unjudged

LEVELS = {CRITICAL: "error", WARNING: "warning", NOTE: "note"}
SEVERITIES = {CRITICAL: "critical", WARNING: "medium", NOTE: "low"}
CATEGORY = "admission"
CHECKS = {
    "own-pods": "A webhook that fails closed does not judge requests for its own pods.",
    "own-data": "A webhook that fails closed does not judge its own data and ReplicaSets.",
    "system-namespaces": "A webhook that fails closed does not judge requests for system pods.",
    "cluster-resources": "A webhook that fails closed does not judge requests for nodes.",
    "events": "A webhook that fails closed does not judge events.",
    "cycle": "Webhooks do not need each other to recover.",
    "no-endpoint": "Each Service that the API server calls has a ready endpoint.",
    "one-replica": "A server that the API server calls has two pods.",
    "no-disruption-budget": "A server that the API server calls has a PodDisruptionBudget.",
    "one-node": "A server that the API server calls runs on two nodes.",
    "unverified": "The API server verifies the servers that it calls.",
    "ca-bundle-empty": "A CA bundle is set.",
    "ca-bundle-invalid": "A CA bundle is readable.",
    "ca-bundle-expired": "A CA bundle is valid.",
    "ca-bundle-expiring": "A CA bundle is valid for two more weeks.",
    "certificate": "The CA bundle verifies the serving certificate.",
    "lease-timeout": "No webhook delays Leases.",
    "long-timeout": "A webhook ends within 15 s.",
    "timeouts-add-up": "Mutating webhooks of a resource end within 34 s together.",
    "side-effects": "Dry runs work.",
    "all-resources": "A webhook that fails closed names its resources.",
    "match-policy": "A webhook judges every version of a resource.",
    "subresources": "A webhook judges the subresources that change the same fields.",
    "order": "Mutating webhooks see the fields that later ones set.",
    "binding-without-policy": "A binding names a policy that exists.",
    "policy-without-binding": "A policy is bound.",
    "params": "The parameters of a policy exist.",
    "never-denies": "A policy that only reports is a trial, for at most 30 days.",
    "unused-exception": "An exception names a policy that exists.",
    "widened-registration": "Policies select namespaces so that webhooks can select the same.",
}


def report(
    state: ClusterState,
    findings: Sequence[Hazard],
    places: Mapping[str, SourceLocation],
    problems: Sequence[InputProblem],
    notes: Sequence[str],
) -> Report:
    """Return the report: one result for each object, with or without findings.

    `places` are the positions of objects in files, by their title.
    """
    by_title: dict[str, list[Hazard]] = {}
    subjects: dict[str, ClusterObject] = {}
    for finding in findings:
        subjects.setdefault(finding.subject.title, finding.subject)
        by_title.setdefault(finding.subject.title, []).append(finding)
    for subject in _judge(state):
        subjects.setdefault(subject.title, subject)
    results = tuple(
        _result(subject, by_title.get(title, []), places.get(title, SourceLocation()))
        for title, subject in subjects.items()
    )
    infos = {name: PolicyInfo(name, summary, category=CATEGORY) for name, summary in CHECKS.items()}
    return Report(
        "doctor",
        results,
        tuple(problems),
        notes=(*notes, *map(printable, note_unjudged(state))),
        policies=infos,
        unlisted=frozenset({"ok", "not judged"}),
    )


def _judge(state: ClusterState) -> list[ClusterObject]:
    called = [caller.subject for caller in callers(state)]
    configured = state.all(WebhookConfiguration)
    return [*configured, *called, *state.all(ClusterPolicy), *state.all(ClusterBinding)]


def _verdict(subject: ClusterObject) -> str:
    """Return the verdict on an object without findings."""
    is_empty = isinstance(subject, WebhookConfiguration) and not has_rules(subject)
    return "not judged" if is_empty else "ok"


def _once(hazard: Hazard, before: Sequence[Hazard]) -> str:
    """Return the fix, whose command is only in the first finding that has it."""
    is_repeated = hazard.command and hazard.command in (each.command for each in before)
    return f"{hazard.fix} (the same command)." if is_repeated else hazard.remedy


def _result(
    subject: ClusterObject, findings: Sequence[Hazard], place: SourceLocation
) -> SubjectResult:
    return SubjectResult(
        kind=subject.kind,
        name=subject.metadata.name,
        namespace=subject.metadata.namespace,
        verdict=findings[0].level if findings else _verdict(subject),
        place=place,
        violations=tuple(
            ReportedViolation(
                policy=finding.check,
                message=printable(f"{finding.message}. Fix: {_once(finding, findings[:at])}"),
                level=LEVELS[finding.level],
                action=finding.level,
                path=finding.path,
                place=place,
                severity=SEVERITIES[finding.level],
                category=CATEGORY,
                rule=CHECKS[finding.check],
                fix=printable(finding.remedy),
                patch=finding.patch,
            )
            for at, finding in enumerate(findings)
        ),
    )
