"""Annotations of GitHub Actions: `::error file=F,line=N,title=POLICY::MESSAGE`.

GitHub shows at most ten errors, ten warnings and ten notices of a step; the job summary has the
rest.
"""

from gatewright.outputs.results import PROBLEM, Report, worst_first
from gatewright.outputs.table import summary

MAX_EACH = 10
MAX_FIRST = 3  # unjudged files before violations
COMMANDS = {"error": "error", "warning": "warning", "note": "notice"}


def render(report: Report) -> str:
    """Return the annotations, the worst first and at most ten of each level, and the counts.

    Unjudged files do not take the place of all violations.
    """
    problems = [
        ("error", problem.place.file, problem.place.line, PROBLEM, problem.message)
        for problem in report.problems
    ]
    annotations = problems[:MAX_FIRST]
    for result, violation in worst_first(report):
        message = (
            violation.message if violation.place.file else f"{result.title}: {violation.message}"
        )
        annotations.append(
            (violation.level, violation.place.file, violation.place.line, violation.policy, message)
        )
    annotations += problems[MAX_FIRST:]
    lines, shown = list[str](), dict.fromkeys(COMMANDS, 0)
    for level, file, line, title, message in annotations:
        shown[level] += 1
        if shown[level] <= MAX_EACH:
            place = f"file={_property(file)},line={line}," if file else ""
            lines.append(f"::{COMMANDS[level]} {place}title={_property(title)}::{_escape(message)}")
    cut = len(annotations) - len(lines)
    lines.append(f"{summary(report)}{f'; {cut} more in the job summary' if cut else ''}")
    return "".join(f"{line}\n" for line in lines)


def _escape(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _escape(text).replace(":", "%3A").replace(",", "%2C")
