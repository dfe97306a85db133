"""Build the report of `check` from judged manifests and policy sets."""

from collections import Counter
from collections.abc import Iterable, Mapping

from config.documents import Document, DocumentError
from gatewright.checks.fixes import patch_of
from gatewright.outputs import (
    InputProblem,
    PolicyInfo,
    ReportedViolation,
    SourceLocation,
    SubjectResult,
)
from webhook.engine import BoundPolicy, Policy
from webhook.findings import Finding
from webhook.harness.manifests import JudgedManifest
from webhook.policy_sets.catalogue import catalogue

LEVELS = {"Deny": "error", "Error": "error", "Warn": "warning", "Audit": "note"}
# Severity and category of violations of a kind's type or planner, which have no policy.
SEVERE, KIND = ("high", "kinds")


def place(document: Document, path: str = "") -> SourceLocation:
    """Return the file and line of a field of a document."""
    return (
        SourceLocation(document.file(path), *document.place(path))
        if document.source
        else SourceLocation()
    )


def problems_of(error: DocumentError) -> list[InputProblem]:
    """Return each line of a document error as a problem."""
    return [*map(problem, error.lines)]


def problem(text: str) -> InputProblem:
    """Return a line of a document error as a problem, with file and line beside the message."""
    file, colon, rest = text.partition(": ")
    name, _, line = file.rpartition(":")
    if not colon:
        return InputProblem(text)
    if line.isdigit():
        return InputProblem(rest, SourceLocation(name, int(line)))
    return InputProblem(rest, SourceLocation(file), whole=True)


def result(judged: JudgedManifest, policies: Mapping[str, PolicyInfo]) -> SubjectResult:
    """Return the verdict on a manifest, with file and line of each violation."""
    return SubjectResult(
        kind=judged.document.value["kind"],
        namespace=judged.namespace,
        name=judged.name,
        verdict=judged.verdict,
        place=place(judged.document),
        violations=tuple(
            _report_violation(judged.document, finding, policies) for finding in judged.findings
        ),
        operations=judged.operations,
    )


def once_per_place(results: Iterable[SubjectResult]) -> tuple[list[SubjectResult], list[str]]:
    """Drop results that repeat another result's violations in the same place.

    Overlays of one file and loops of a template give such results. Return the other results, and a
    line for each place with dropped ones.
    """
    first, repeats = dict[object, SubjectResult](), Counter[object]()
    for result in results:
        found = tuple((violation.message, violation.place) for violation in result.violations)
        key = (result.kind, result.place, found) if found and result.place.file else id(result)
        first.setdefault(key, result)
        repeats[key] += 1
    lines = [
        f"{result.place}: {repeats[key] - 1} more of the objects rendered from it have the same "
        "violations"
        for key, result in first.items()
        if repeats[key] > 1
    ]
    return [*first.values()], lines


def _report_violation(
    document: Document, finding: Finding, policies: Mapping[str, PolicyInfo]
) -> ReportedViolation:
    info = policies.get(finding.policy) or PolicyInfo(
        finding.policy, severity=SEVERE, category=KIND
    )
    violation, (patch, is_safe) = finding.violation, patch_of(finding, policies)
    return ReportedViolation(
        policy=finding.policy,
        message=finding.message,
        check="" if violation is None else violation.check,
        level=LEVELS[finding.action],
        action=finding.action,
        path=finding.path,
        place=place(document, finding.path),
        severity=info.severity,
        category=info.category,
        found="" if violation is None else violation.found_text,
        rule="" if violation is None else violation.rule,
        fix="" if violation is None else violation.fix,
        patch=patch,
        patch_is_safe=is_safe,
        child=None if violation is None else violation.child,
    )


def policy_infos(policies: Iterable[BoundPolicy]) -> dict[str, PolicyInfo]:
    """Return the fields of each policy in force that output formats print."""
    return {each.title: _info(each.title, each.policy) for each in policies}


def check_infos(results: Iterable[SubjectResult]) -> dict[str, PolicyInfo]:
    """Return the fields that output formats print of the checks in the results."""
    found = {
        violation.rule_name: violation.check
        for result in results
        for violation in result.violations
        if violation.check
    }
    return {name: _info(name, catalogue()[check]) for name, check in found.items()}


def _info(name: str, policy: Policy) -> PolicyInfo:
    return PolicyInfo(
        name, policy.summary, policy.documentation, policy.severity, policy.category, policy.fix
    )
