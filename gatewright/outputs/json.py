"""JSON for programs. The types are its JSON Schema, docs/reference/report.schema.json."""

from dataclasses import fields
from typing import Any

import orjson
from typing_extensions import TypedDict  # pydantic requires this one before Python 3.12

from gatewright.outputs.results import Report, ReportedViolation, SourceLocation, SubjectResult


class PlaceRecord(TypedDict):
    """The place of a field: file ("" for a live object), line and column, counted from 1."""

    file: str
    line: int
    column: int


class ViolationRecord(PlaceRecord):
    """One violation: the policy object, its action (Error if undecided), field and message.

    `check` names the rule if a policy has several, such as host-ports of a level.

    `level` is error, warning or note; `patch` is the JSON Patch (RFC 6902) that fixes it, or empty;
    `patch_is_safe` means that the patch cannot stop an application.
    """

    policy: str
    check: str
    action: str
    level: str
    severity: str
    category: str
    path: str
    message: str
    found: str
    rule: str
    fix: str
    patch: list[dict[str, Any]]
    patch_is_safe: bool


class ResultRecord(PlaceRecord):
    """One judged object or case: its names, the verdict, and the JSON Patch of policies."""

    kind: str
    namespace: str
    name: str
    verdict: str
    violations: list[ViolationRecord]
    patch: list[dict[str, Any]]


class ProblemRecord(PlaceRecord):
    """A file, or a document in it, that could not be read, parsed or judged."""

    message: str


class ReportRecord(TypedDict):
    """The report of one command: results, problems, notes, and counts by verdict."""

    command: str
    summary: dict[str, int]
    results: list[ResultRecord]
    problems: list[ProblemRecord]
    notes: list[str]


def render(report: Report) -> str:
    """Return the report as indented JSON."""
    record: ReportRecord = {
        "command": report.command,
        "summary": report.counts,
        "results": [_result(each) for each in report.results],
        "problems": [{**_place(each.place), "message": each.message} for each in report.problems],
        "notes": list(report.notes),
    }
    return orjson.dumps(record, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE).decode()


def _result(result: SubjectResult) -> ResultRecord:
    return {
        **_place(result.place),
        "kind": result.kind,
        "namespace": result.namespace,
        "name": result.name,
        "verdict": result.verdict,
        "violations": [_violation(each) for each in result.violations],
        "patch": [dict(each) for each in result.operations],
    }


def _violation(violation: ReportedViolation) -> ViolationRecord:
    record: Any = {each.name: getattr(violation, each.name) for each in fields(violation)}
    del record["child"]  # `path` and `message` name it in terms of the object
    record |= _place(record.pop("place"))
    return record  # type: ignore[no-any-return]  # both have the same fields


def _place(place: SourceLocation) -> PlaceRecord:
    return {"file": place.file, "line": place.line, "column": place.column}
