"""Cron schedules of CronJobs: validation, and the next run of a schedule.

Kubernetes parses them with robfig/cron: five fields or a word, `?` for `*`, and neither seconds nor
L, W and #. Where a day of the month and a day of the week are both restricted, `*/2` counts as
restricted: either may match.
Source: https://pkg.go.dev/github.com/robfig/cron/v3#hdr-CRON_Expression_Format
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime

from cronsim import CronSim, CronSimError

WORDS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
FIELDS = ("minute", "hour", "day of month", "month", "day of week")
BOUNDS = ("0-59", "0-23", "1-31", "1-12", "0-6")
VALUE = r"(?:[0-9]+|[A-Za-z]{3})"
TERM = re.compile(rf"(?P<start>[*?]|{VALUE})(?:-(?P<end>{VALUE}))?(?:/(?P<step>[0-9]+))?")


class CronError(ValueError):
    """A schedule that a CronJob rejects, or that never occurs."""


def check(schedule: str) -> None:
    """Raise CronError, with a message for users, if the schedule is invalid."""
    upcoming(schedule, datetime(2000, 1, 1, tzinfo=UTC))


def upcoming(schedule: str, after: datetime) -> datetime:
    """Return the next time of the schedule, in UTC."""
    try:
        moment = next(CronSim(" ".join(_fields(schedule)), after.astimezone(UTC)), None)
    except CronSimError as error:
        raise CronError(str(error).replace("Bad", "wrong").replace("-", " ")) from error
    if moment is None:
        raise CronError("it never occurs")
    return moment


def _fields(schedule: str) -> Iterator[str]:
    """Yield the five fields in the form that cronsim reads the same way as Kubernetes."""
    fields = WORDS.get(schedule, schedule).split()
    if fields and fields[0] == "@every":
        raise CronError("an interval (@every) is not supported")
    if fields and fields[0].startswith(("TZ=", "CRON_TZ=")):
        raise CronError("a time zone (TZ=, CRON_TZ=) is not supported")
    if len(fields) != len(FIELDS):
        had = "1 field" if len(fields) == 1 else f"{len(fields)} fields"
        raise CronError(
            f"it has {had} instead of 5: minute, hour, day of month, month, day of week"
        )
    for field, name, bounds in zip(fields, FIELDS, BOUNDS, strict=True):
        yield ",".join(_term(term, name, bounds) for term in field.split(","))


def _term(term: str, name: str, bounds: str) -> str:
    match = TERM.fullmatch(term)
    if match is None or (match["start"] in "*?" and match["end"]):
        raise CronError(f'wrong {name} "{term}"')
    start, end, step = match.group("start", "end", "step")
    if name == "day of week" and "7" in (start, end):
        raise CronError('wrong day of week "7": Sunday is 0')
    if start in "*?":
        return f"{bounds}/{step}" if step not in (None, "1") else "*"
    if step and not end:  # from there to the last
        end = bounds.partition("-")[2]
    return start + (f"-{end}" if end else "") + (f"/{step}" if step else "")
