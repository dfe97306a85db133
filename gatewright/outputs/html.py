"""A report as one HTML file, usable offline, by keyboard, on a phone and on paper."""

from importlib.resources import files
from itertools import groupby

from jinja2 import Environment, StrictUndefined

from gatewright.outputs.results import (
    SEVERITIES,
    Report,
    ReportedViolation,
    SubjectResult,
    worst_first,
)
from gatewright.outputs.table import summary

MAX_OPEN = 200  # violations; with more, groups start closed so that the page opens at once


def render(report: Report) -> str:
    """Return the page: summary, violations in three groupings, and policy pages."""
    violations = worst_first(report)
    policies = list(dict.fromkeys(each.policy for _, each in violations))
    by_policy = sorted(violations, key=lambda each: policies.index(each[1].policy))
    namespaces = sorted({result.namespace for result, _ in violations})
    present = {each.severity for _, each in violations}
    severities = [each for each in SEVERITIES if each in present]
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    template = environment.from_string(
        (files("gatewright.outputs") / "templates" / "report.html").read_text("utf-8")
    )
    return template.render(
        report=report,
        summary=summary(report),
        violations=violations,
        groups=[
            (name, list(members))
            for name, members in groupby(by_policy, key=lambda each: each[1].policy)
        ],
        anchors={name: f"p{number}" for number, name in enumerate(policies)},
        matrix=_matrix(violations, namespaces),
        severities=severities,
        filters=[
            ("n", "Namespace", namespaces),
            ("s", "Severity", severities),
            ("p", "Policy", policies),
        ],
        is_open=len(violations) <= MAX_OPEN,
    )


def _matrix(
    violations: list[tuple[SubjectResult, ReportedViolation]], namespaces: list[str]
) -> dict[str, dict[str, int]]:
    """Return the number of violations by namespace and severity."""
    matrix = {namespace: dict.fromkeys(SEVERITIES, 0) for namespace in namespaces}
    for result, violation in violations:
        matrix[result.namespace][violation.severity] += 1
    return matrix
