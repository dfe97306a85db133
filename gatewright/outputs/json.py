"""JSON for programs: what docs/reference/check-output.schema.json describes."""

from typing import Any

import orjson

from gatewright.outputs.results import Place, Report, Reported, Result


def render(report: Report) -> str:
    """Return the report as indented JSON."""
    record = {
        "command": report.command,
        "summary": report.counts,
        "results": [_result(each) for each in report.results],
        "problems": [{**_place(each.place), "message": each.message} for each in report.problems],
        "notes": list(report.notes),
    }
    return orjson.dumps(record, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE).decode()


def _result(result: Result) -> dict[str, Any]:
    return {
        **_place(result.place),
        "kind": result.kind,
        "namespace": result.namespace,
        "name": result.name,
        "verdict": result.verdict,
        "violations": [_violation(each) for each in result.violations],
        "patch": list(result.operations),
    }


def _violation(each: Reported) -> dict[str, Any]:
    return {
        "policy": each.policy,
        "action": each.action,
        "level": each.level,
        "severity": each.severity,
        "category": each.category,
        "path": each.path,
        **_place(each.place),
        "message": each.message,
        "found": each.found,
        "rule": each.rule,
        "fix": each.fix,
        "patch": list(each.patch),
    }


def _place(place: Place) -> dict[str, Any]:
    return {"file": place.file, "line": place.line, "column": place.column}
