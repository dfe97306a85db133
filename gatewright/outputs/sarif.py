"""SARIF 2.1.0 for GitHub's code scanning, within its limits.

Source of the limits: "SARIF support for code scanning" in GitHub's documentation.
"""

import hashlib
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path, PurePath
from typing import Any
from urllib.parse import quote

import orjson

from gatewright import __version__
from gatewright.outputs.line_hashes import LINE_END, line_hashes
from gatewright.outputs.results import (
    PROBLEM,
    PolicyInfo,
    Report,
    ReportedViolation,
    SourceLocation,
    SubjectResult,
    worst_first,
)

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
MAX_RESULTS = 25_000
# GitHub: 9.0 or more is critical, …
SECURITY_SEVERITY = {"critical": "9.5", "high": "8.0", "medium": "5.5", "low": "2.0"}
FINGERPRINT = "gatewrightViolation/v1"
HashedLines = tuple[list[str], list[str]]
GITHUBS = "primaryLocationLineHash"  # the only fingerprint that GitHub reads


def render(report: Report) -> str:
    """Return the report as one SARIF run with at most 25,000 violations, the worst first."""
    violations = worst_first(report)
    kept = violations[:MAX_RESULTS]
    rules = {
        name: index for index, name in enumerate(dict.fromkeys(each.rule_name for _, each in kept))
    }
    counts: dict[str, int] = {}
    lines = cache(_lines)
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
        "results": [
            _result(result, violation, rules[violation.rule_name], counts, lines)
            for result, violation in kept
        ],
    }
    log = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return orjson.dumps(log, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE).decode()


def _rule(info: PolicyInfo) -> dict[str, Any]:
    summary = info.summary or info.name
    text = info.documentation or summary
    return {
        "id": info.name,
        "shortDescription": {"text": summary},
        "fullDescription": {"text": text.replace("\n\n", "\n").strip()},
        "help": {"text": text},
        "properties": {
            "tags": ["kubernetes", info.category] if info.category else ["kubernetes"],
            "security-severity": SECURITY_SEVERITY[info.severity],
        },
    }


def _result(
    result: SubjectResult,
    each: ReportedViolation,
    rule: int,
    counts: dict[str, int],
    lines: Callable[[str], HashedLines],
) -> dict[str, Any]:
    identity = "\n".join((each.policy, result.kind, result.namespace, result.name, each.path))
    counts[identity] = number = counts.get(identity, -1) + 1
    fingerprints = {FINGERPRINT: hashlib.sha256(f"{identity}\n{number}".encode()).hexdigest()}
    region, line_hash = _region(each.place, lines)
    if line_hash:
        fingerprints[GITHUBS] = line_hash
    return {
        "ruleId": each.rule_name,
        "ruleIndex": rule,
        "level": each.level,
        "message": {"text": each.message},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": _uri(each.place.file or f"cluster/{result.title}")},
                    "region": region,
                },
                "logicalLocations": [
                    {"fullyQualifiedName": f"{result.title}: {each.path}", "kind": "member"}
                ],
            }
        ],
        "partialFingerprints": fingerprints,
        "properties": {"severity": each.severity, "category": each.category, "action": each.action},
    }


def _region(
    place: SourceLocation, lines: Callable[[str], HashedLines]
) -> tuple[dict[str, int], str]:
    """Return a location as a region up to the end of its line, and the hash of the line."""
    region = {"startLine": place.line, "startColumn": place.column}
    texts, hashes = lines(place.file)
    if not 0 < place.line <= len(texts):
        return region, ""
    end = max(len(texts[place.line - 1]), place.column) + 1
    return {**region, "endLine": place.line, "endColumn": end}, hashes[place.line - 1]


def _lines(file: str) -> HashedLines:
    """Return the lines of a file and their hashes; none for an unreadable file."""
    try:
        text = LINE_END.sub("\n", Path(file).read_bytes().decode("utf-8", "replace"))
    except (OSError, ValueError):
        return [], []
    return text.split("\n"), line_hashes(text)


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
