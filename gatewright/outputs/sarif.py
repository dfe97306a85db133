"""SARIF 2.1.0 for code scanning, within GitHub's limits.

Source of the limits: "SARIF support for code scanning" in GitHub's documentation.
"""

import hashlib
from collections.abc import Iterable
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

import orjson

from gatewright import __version__
from gatewright.outputs.results import (
    PROBLEM,
    PolicyInfo,
    Report,
    ReportedViolation,
    SubjectResult,
    worst_first,
)

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
MAX_RESULTS = 25_000
# GitHub: 9.0 or more is critical, …
SECURITY_SEVERITY = {"critical": "9.5", "high": "8.0", "medium": "5.5", "low": "2.0"}
FINGERPRINT = "gatewrightViolation/v1"


def render(report: Report) -> str:
    """Return the report as one SARIF run with at most 25,000 violations, the worst first."""
    violations = worst_first(report)
    kept = violations[:MAX_RESULTS]
    rules = {
        name: index for index, name in enumerate(dict.fromkeys(each.policy for _, each in kept))
    }
    seen: dict[str, int] = {}
    run = {
        "tool": {
            "driver": {
                "name": "Gatewright",
                "semanticVersion": __version__,
                "rules": [_rule(report.info(name)) for name in rules],
            }
        },
        "columnKind": "unicodeCodePoints",
        "invocations": [
            {
                "executionSuccessful": not report.problems,
                "toolExecutionNotifications": list(
                    _notifications(report, len(violations) - len(kept))
                ),
            }
        ],
        "results": [_result(result, each, rules[each.policy], seen) for result, each in kept],
    }
    log = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return orjson.dumps(log, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE).decode()


def _rule(info: PolicyInfo) -> dict[str, Any]:
    return {
        "id": info.name,
        "shortDescription": {"text": info.summary or info.name},
        "help": {"text": info.documentation or info.summary or info.name},
        "properties": {
            "tags": ["kubernetes", info.category] if info.category else ["kubernetes"],
            "security-severity": SECURITY_SEVERITY[info.severity],
        },
    }


def _result(
    result: SubjectResult, each: ReportedViolation, rule: int, seen: dict[str, int]
) -> dict[str, Any]:
    identity = "\n".join((each.policy, result.kind, result.namespace, result.name, each.path))
    seen[identity] = number = seen.get(identity, -1) + 1
    fingerprint = hashlib.sha256(f"{identity}\n{number}".encode()).hexdigest()
    return {
        "ruleId": each.policy,
        "ruleIndex": rule,
        "level": each.level,
        "message": {"text": each.message},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": _uri(each.place.file or f"cluster/{result.title}")},
                    "region": {"startLine": each.place.line, "startColumn": each.place.column},
                },
                "logicalLocations": [
                    {"fullyQualifiedName": f"{result.title}: {each.path}", "kind": "member"}
                ],
            }
        ],
        "partialFingerprints": {FINGERPRINT: fingerprint},
        "properties": {"severity": each.severity, "category": each.category, "action": each.action},
    }


def _notifications(report: Report, cut: int) -> Iterable[dict[str, Any]]:
    for problem in report.problems:
        notification: dict[str, Any] = {"level": "error", "message": {"text": problem.message}}
        if problem.place.file:
            region = {"startLine": problem.place.line, "startColumn": problem.place.column}
            physical = {"artifactLocation": {"uri": _uri(problem.place.file)}, "region": region}
            notification["locations"] = [{"physicalLocation": physical}]
        yield {"descriptor": {"id": PROBLEM}, **notification}
    if cut:
        yield {
            "level": "warning",
            "message": {"text": f"{cut} more violations are left out; the limit is {MAX_RESULTS}"},
        }


def _uri(file: str) -> str:
    path = PurePath(file.strip("<>"))
    return path.as_uri() if path.is_absolute() else quote(path.as_posix())
