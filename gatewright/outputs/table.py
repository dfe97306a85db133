"""A table for people: one line per result, its violations below it, each with file and line."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import groupby

import orjson

from gatewright.console.terminal import STYLES, colour, wrap
from gatewright.outputs.results import Report, ReportedViolation, SubjectResult
from webhook.messages import count_noun

INDENT = "  "
COMMAND = ": kubectl "  # begins the command at the end of a message
NOUNS = {"test": "case", "exceptions": "exception"}  # by command: what its results are


def render(report: Report, width: int | None = None, *, colours: bool = False) -> str:
    """Return the table, wrapped between words at `width` columns if given."""
    return "".join(f"{line}\n" for line in _lines(report, width, colours=colours))


def _lines(report: Report, width: int | None, *, colours: bool) -> Iterator[str]:
    results = [each for each in report.results if each.verdict not in report.unlisted]
    listed = list(_undecided_once(results))
    column = max((len(each.verdict) for each in listed), default=0)
    for result in listed:
        place = f"  ({result.place})" if result.place.file else ""
        head = f"{result.verdict.ljust(column)}  {result.title}{place}"
        first, *rest = wrap(head, width, " " * (column + 2))
        style = STYLES.get(result.verdict, "") if colours else ""
        yield colour(first[:column], style) + first[column:]
        yield from rest
        for (place, mark, message), same in groupby(result.violations, key=_parts):
            policies = ", ".join(each.policy for each in same)
            yield from _violation(f"{INDENT}{place}{policies}{mark}: {message}", width)
        for operation in result.operations:
            value = orjson.dumps(operation["value"]).decode() if "value" in operation else ""
            text = f"{INDENT}{operation['op']} {operation['path']} {value}".rstrip()
            yield from (
                colour(line, "cyan" if colours else "") for line in wrap(text, width, INDENT * 2)
            )
    yield summary(report)


def _undecided_once(results: Iterable[SubjectResult]) -> Iterator[SubjectResult]:
    """Yield the results; the same reason why objects were not decided is only in the first one."""
    counts = Counter(
        (violation.policy, violation.message)
        for result in results
        for violation in result.violations
        if violation.action == "Error"
    )
    for result in results:
        kept = list[ReportedViolation]()
        for violation in result.violations:
            if violation.action != "Error":
                kept.append(violation)
            elif number := counts.pop((violation.policy, violation.message), 0):
                others = f" Also {count_noun(number - 1, 'more object')}." * (number > 1)
                kept.append(replace(violation, message=violation.message + others))
        if kept or not result.violations:
            yield replace(result, violations=tuple(kept))


def _violation(text: str, width: int | None) -> Iterator[str]:
    """Yield the lines of a violation. On a terminal, a command is one line, to be copied."""
    words, is_followed, command = text.partition(COMMAND)
    if width is None or not is_followed:
        yield from wrap(text, width, INDENT * 2)
        return
    yield from wrap(f"{words}:", width, INDENT * 2)
    yield f"{INDENT * 2}{COMMAND.removeprefix(': ')}{command}"


def _parts(each: ReportedViolation) -> tuple[str, str, str]:
    """Return the parts of a line except the policy: location, mark and message.

    The mark is for violations that would not deny the object.
    """
    mark = f" ({each.action.lower()})" if each.action in ("Warn", "Audit") else ""
    return f"{each.place}: " if each.place.file else "", mark, each.message


def summary(report: Report) -> str:
    """Return the counts in one line: `3 objects: 1 denied, 2 allowed`."""
    counts = ", ".join(f"{count} {verdict}" for verdict, count in report.counts.items())
    head = count_noun(len(report.results), NOUNS.get(report.command, "object"))
    return f"{head}: {counts}" if counts else head
