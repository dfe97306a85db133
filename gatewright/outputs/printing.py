"""A report whose texts can be printed: what objects and files are called cannot start a command."""

from dataclasses import replace

from config.printable import printable, printable_lines
from gatewright.outputs.results import (
    InputProblem,
    Report,
    ReportedViolation,
    SourceLocation,
    SubjectResult,
)


def printable_report(report: Report) -> Report:
    """Return the report with every name and message escaped, for formats that people read."""
    return replace(
        report,
        results=tuple(map(_result, report.results)),
        problems=tuple(map(_problem, report.problems)),
        notes=tuple(map(printable_lines, report.notes)),
    )


def _result(result: SubjectResult) -> SubjectResult:
    return replace(
        result,
        kind=printable(result.kind),
        name=printable(result.name),
        namespace=printable(result.namespace),
        place=_place(result.place),
        violations=tuple(map(_violation, result.violations)),
    )


def _violation(violation: ReportedViolation) -> ReportedViolation:
    return replace(
        violation,
        policy=printable(violation.policy),
        path=printable(violation.path),
        message=printable_lines(violation.message),
        place=_place(violation.place),
    )


def _problem(problem: InputProblem) -> InputProblem:
    return replace(problem, message=printable_lines(problem.message), place=_place(problem.place))


def _place(place: SourceLocation) -> SourceLocation:
    return replace(place, file=printable(place.file))
