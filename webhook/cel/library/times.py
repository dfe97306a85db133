"""Timestamps and durations, to the nanosecond (cel-spec, "Timestamps" and "Durations")."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from webhook.cel.cost import NO_MORE, WALKED, Meter, parsing
from webhook.cel.errors import EvaluationError, unconvertible
from webhook.cel.functions import Row, declare
from webhook.cel.values import NAMES, SECOND, Duration, Timestamp, brief, check_range

_UNITS = {"h": 3600 * SECOND, "m": 60 * SECOND, "s": SECOND, "ms": 10**6, "ns": 1}
_UNITS |= dict.fromkeys(("us", "µs", "μs"), 1000)
_DURATION = re.compile(
    r"[+-]?(?:0|(?:(?:\d{1,19}(?:\.\d{0,30})?|\.\d{1,30})(?:ns|us|µs|μs|ms|s|m|h))+)"
)
_PART = re.compile(r"(\d*)\.?(\d*)(ns|us|µs|μs|ms|s|m|h)")
_TIMESTAMP = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:[.,](\d{1,30}))?(Z|[+-]\d\d:\d\d)")
_OFFSET = re.compile(r"([+-]?)(\d{1,2}):(\d\d)")
MAX_ZONE = 255  # characters of a time zone's name, which is a file name
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def parse_timestamp(text: str) -> Timestamp:
    """Parse an RFC 3339 timestamp."""
    match = _TIMESTAMP.fullmatch(text)
    try:
        if match is None:
            raise ValueError
        whole = datetime.fromisoformat(match[1] + match[3]) - _EPOCH
    except (ValueError, OverflowError):
        raise unconvertible("string", NAMES[Timestamp]) from None
    fraction = int((match[2] or "").ljust(9, "0")[:9])
    return check_range(Timestamp, whole // timedelta(seconds=1) * SECOND + fraction)


def parse_duration(text: str) -> Duration:
    """Parse a duration such as `1h30m`."""
    if len(text) > 256 or not _DURATION.fullmatch(text):
        raise unconvertible("string", NAMES[Duration])
    total = 0
    for whole, fraction, name in _PART.findall(text):
        unit = _UNITS[name]
        total += int(whole or 0) * unit + int(fraction or 0) * unit // 10 ** len(fraction)
    return check_range(Duration, -total if text.startswith("-") else total)


def _duration_of_int(_: int) -> Duration:
    raise unconvertible("int", NAMES[Duration])


def written_timestamp(value: Timestamp) -> str:
    """Return RFC 3339 text in UTC, with as many digits as needed."""
    seconds, fraction = divmod(int(value), SECOND)
    whole = (_EPOCH + timedelta(seconds=seconds)).isoformat().removesuffix("+00:00")
    return f"{whole}{_fraction(fraction)}Z"


def written_duration(value: Duration) -> str:
    """Return the duration in seconds, such as `90.5s`."""
    seconds, fraction = divmod(abs(int(value)), SECOND)
    return f"{'-' if value < 0 else ''}{seconds}{_fraction(fraction)}s"


def _fraction(nanoseconds: int) -> str:
    return f".{nanoseconds:09}".rstrip("0") if nanoseconds else ""


def _part(name: str, read: Callable[[datetime], int]) -> Row:
    return (
        f"(timestamp).{name}(?string) -> int",
        lambda meter, value, zone="UTC": read(_local(meter, value, zone)),
        WALKED,
    )


def _local(meter: Meter, value: Timestamp, zone: str) -> datetime:
    if len(zone) > MAX_ZONE:
        raise EvaluationError(f"unknown time zone {brief(zone)}")
    is_named = zone not in {"", "UTC"} and not _OFFSET.fullmatch(zone)
    meter.charge(400 if is_named else 12)  # a named zone is read from a file
    try:
        return (_EPOCH + timedelta(microseconds=int(value) // 1000)).astimezone(_zone(zone))
    except (ValueError, OverflowError, OSError, ZoneInfoNotFoundError):
        meter.charge(1200 if is_named else 0)  # all directories were searched for the file
        raise EvaluationError(f"unknown time zone {brief(zone)}") from None


def _zone(name: str) -> tzinfo:
    match = _OFFSET.fullmatch(name)
    if match is None:
        return UTC if name in {"", "UTC"} else ZoneInfo(name)
    offset = timedelta(hours=int(match[2]), minutes=int(match[3]))
    return timezone(-offset if match[1] == "-" else offset)


def _whole(name: str, unit: int) -> Row:
    return (
        f"(duration).{name}() -> int",
        lambda value: abs(int(value)) // unit * (-1 if value < 0 else 1),
        NO_MORE,
    )


declare(
    ("timestamp(string) -> timestamp", parse_timestamp, parsing),
    (
        "timestamp(int) -> timestamp",
        lambda seconds: check_range(Timestamp, seconds * SECOND),
        NO_MORE,
    ),
    ("int(timestamp) -> int", lambda value: int(value) // SECOND, NO_MORE),
    ("int(duration) -> int", int, NO_MORE),
    ("duration(string) -> duration", parse_duration, parsing),
    ("duration(int) -> duration", _duration_of_int, NO_MORE),
    ("timestamp(timestamp) -> timestamp", lambda value: value, NO_MORE),
    ("duration(duration) -> duration", lambda value: value, NO_MORE),
    _part("getFullYear", lambda local: local.year),
    _part("getMonth", lambda local: local.month - 1),
    _part("getDayOfYear", lambda local: local.timetuple().tm_yday - 1),
    _part("getDayOfMonth", lambda local: local.day - 1),
    _part("getDate", lambda local: local.day),
    _part("getDayOfWeek", lambda local: local.isoweekday() % 7),
    _part("getHours", lambda local: local.hour),
    _part("getMinutes", lambda local: local.minute),
    _part("getSeconds", lambda local: local.second),
    _part("getMilliseconds", lambda local: local.microsecond // 1000),
    _whole("getHours", 3600 * SECOND),
    _whole("getMinutes", 60 * SECOND),
    _whole("getSeconds", SECOND),
    _whole("getMilliseconds", 10**6),
)
