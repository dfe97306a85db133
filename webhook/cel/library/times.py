"""Timestamps and durations, to the nanosecond (cel-spec, "Timestamps" and "Durations")."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from webhook.cel.errors import EvaluationError
from webhook.cel.functions import declare, function
from webhook.cel.values import MAX_INT, MIN_INT, Duration, Timestamp

SECOND = 10**9
FIRST, LAST = -62_135_596_800 * SECOND, 253_402_300_800 * SECOND - 1  # the years 1 to 9999
_UNITS = {"h": 3600 * SECOND, "m": 60 * SECOND, "s": SECOND, "ms": 10**6, "us": 1000, "µs": 1000, "μs": 1000, "ns": 1}
_DURATION = re.compile(r"[+-]?(?:0|(?:(?:\d{1,19}(?:\.\d{0,30})?|\.\d{1,30})(?:ns|us|µs|μs|ms|s|m|h))+)")
_PART = re.compile(r"(\d*)\.?(\d*)(ns|us|µs|μs|ms|s|m|h)")
_TIMESTAMP = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:[.,](\d{1,30}))?(Z|[+-]\d\d:\d\d)")
_OFFSET = re.compile(r"([+-]?)(\d{1,2}):(\d\d)")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def checked_timestamp(nanoseconds: int) -> Timestamp:
    """Return the moment. EvaluationError outside the years 1 to 9999."""
    if FIRST <= nanoseconds <= LAST:
        return Timestamp(nanoseconds)
    raise EvaluationError("timestamp overflow")


def checked_duration(nanoseconds: int) -> Duration:
    """Return the duration. EvaluationError where 64 bits cannot hold it."""
    if MIN_INT <= nanoseconds <= MAX_INT:
        return Duration(nanoseconds)
    raise EvaluationError("duration overflow")


@function("timestamp(string) -> timestamp")
def parse_timestamp(text: str) -> Timestamp:
    """Return the moment that RFC 3339 text says."""
    match = _TIMESTAMP.fullmatch(text)
    try:
        if match is None:
            raise ValueError
        zone = "+00:00" if match[3] == "Z" else match[3]
        whole = datetime.fromisoformat(f"{match[1]}{zone}") - _EPOCH
    except (ValueError, OverflowError):
        raise EvaluationError("type conversion error from 'string' to 'google.protobuf.Timestamp'") from None
    fraction = int((match[2] or "").ljust(9, "0")[:9])
    return checked_timestamp((whole.days * 86400 + whole.seconds) * SECOND + fraction)


declare(lambda seconds: checked_timestamp(seconds * SECOND), "timestamp(int) -> timestamp")


declare(lambda value: value, "timestamp(timestamp) -> timestamp", "duration(duration) -> duration")


@function("duration(string) -> duration")
def parse_duration(text: str) -> Duration:
    """Return the duration that text such as `1h30m` says."""
    if len(text) > 256 or not _DURATION.fullmatch(text):
        raise EvaluationError("type conversion error from 'string' to 'google.protobuf.Duration'")
    total = 0
    for whole, fraction, unit in _PART.findall(text):
        total += int(whole or 0) * _UNITS[unit] + int(fraction or 0) * _UNITS[unit] // 10 ** len(fraction)
    return checked_duration(-total if text.startswith("-") else total)


@function("duration(int) -> duration")
def _duration_of_int(_: int) -> Duration:
    raise EvaluationError("type conversion error from 'int' to 'google.protobuf.Duration'")


def written_timestamp(value: Timestamp) -> str:
    """Return RFC 3339 text in UTC, with as many digits as needed."""
    seconds, fraction = divmod(int(value), SECOND)
    text = (_EPOCH + timedelta(seconds=seconds)).strftime("%m-%dT%H:%M:%S")
    year = (_EPOCH + timedelta(seconds=seconds)).year
    return f"{year:04}-{text}{_fraction(fraction)}Z"


def written_duration(value: Duration) -> str:
    """Return the duration in seconds, such as `90.5s`."""
    seconds, fraction = divmod(abs(int(value)), SECOND)
    return f"{'-' if value < 0 else ''}{seconds}{_fraction(fraction)}s"


def _fraction(nanoseconds: int) -> str:
    return f".{nanoseconds:09}".rstrip("0") if nanoseconds else ""


def _local(value: Timestamp, zone: str = "UTC") -> datetime:
    try:
        return (_EPOCH + timedelta(microseconds=int(value) // 1000)).astimezone(_zone(zone))
    except (ValueError, OverflowError, OSError, ZoneInfoNotFoundError):
        raise EvaluationError(f"unknown time zone {zone}") from None


def _zone(name: str) -> tzinfo:
    match = _OFFSET.fullmatch(name)
    if match is None:
        return UTC if name in {"", "UTC"} else ZoneInfo(name)
    offset = timedelta(hours=int(match[2]), minutes=int(match[3]))
    return timezone(-offset if match[1] == "-" else offset)


def _whole(unit: str) -> Callable[[Duration], int]:
    return lambda value: abs(int(value)) // _UNITS[unit] * (-1 if value < 0 else 1)


_FIELDS: dict[str, Callable[[datetime], int]] = {
    "getFullYear": lambda local: local.year,
    "getMonth": lambda local: local.month - 1,
    "getDayOfYear": lambda local: local.timetuple().tm_yday - 1,
    "getDayOfMonth": lambda local: local.day - 1,
    "getDate": lambda local: local.day,
    "getDayOfWeek": lambda local: local.isoweekday() % 7,
    "getHours": lambda local: local.hour,
    "getMinutes": lambda local: local.minute,
    "getSeconds": lambda local: local.second,
    "getMilliseconds": lambda local: local.microsecond // 1000,
}
for _name, _field in _FIELDS.items():
    declare(
        lambda value, zone="UTC", field=_field: field(_local(value, zone)),
        f"(timestamp).{_name}() -> int",
        f"(timestamp).{_name}(string) -> int",
    )
for _name, _unit in (("getHours", "h"), ("getMinutes", "m"), ("getSeconds", "s"), ("getMilliseconds", "ms")):
    declare(_whole(_unit), f"(duration).{_name}() -> int")
