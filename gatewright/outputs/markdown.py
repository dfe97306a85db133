"""Markdown for a pull request or a job summary, within GitHub's limit of characters."""

import re

from gatewright.outputs.results import Report, worst_first
from gatewright.outputs.table import summary

MAX_LENGTH = 60_000  # characters; leaves room for additions of a workflow
SIGNS = {"error": "❌", "warning": "⚠️", "note": "🔎"}
VERDICTS = {"impact": ("nothing becomes denied", "objects become denied")}
SPECIAL = re.compile(r"([\\`*_\[\]<>|#&~])")


def render(report: Report) -> str:
    """Return counts, violations with the worst first, problems, and expiring exceptions."""
    head = [f"### Gatewright {report.command}: {_verdict(report)}", "", summary(report)]
    tail = [f"- {escape_markdown(str(each))}" for each in report.problems]
    tail = ["", "**Not judged**", "", *tail] if tail else []
    if report.ending:
        lines = (
            f"- {escape_markdown(ending.expires)}: {escape_markdown(', '.join(ending.policies))}: "
            f"{escape_markdown(ending.reason)}"
            for ending in report.ending
        )
        tail += ["", "**Exceptions that expire within 30 days**", "", *lines]
    room = MAX_LENGTH - sum(len(line) + 1 for line in (*head, *tail))
    return "\n".join([*head, *_table(report, room), *tail])[: MAX_LENGTH + 1000] + "\n"


def _verdict(report: Report) -> str:
    passed, failed = VERDICTS.get(report.command, ("passed", "failed"))
    return {0: passed, 1: failed, 3: "not everything could be judged"}[report.exit_code()]


def _table(report: Report, room: int) -> list[str]:
    violations = worst_first(report)
    if not violations:
        return []
    lines = ["", "| | Object | Policy | Violation |", "|---|---|---|---|"]
    room -= sum(map(len, lines)) + 100
    for number, (result, violation) in enumerate(violations):
        place = f"<br>{escape_markdown(str(violation.place))}" if violation.place.file else ""
        line = (
            f"| {SIGNS[violation.level]} | {escape_markdown(result.title)}{place} "
            f"| {escape_markdown(violation.policy)} | {escape_markdown(violation.message)} |"
        )
        room -= len(line) + 1
        if room < 0:
            return [*lines, "", f"and {len(violations) - number} more violations"]
        lines.append(line)
    return lines


def escape_markdown(text: str) -> str:
    """Return a text that is no markup: no link, image, element or cell of a table."""
    return SPECIAL.sub(r"\\\1", " ".join(text.split()))
