"""Conversions between types: `int()`, `uint()`, `double()`, `string()` and others."""

import math
import re
from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal
from typing import Any

from webhook.cel.cost import NO_MORE, copying
from webhook.cel.errors import EvaluationError, unconvertible
from webhook.cel.functions import Row, declare
from webhook.cel.library.times import written_duration, written_timestamp
from webhook.cel.values import (
    MAX_INT,
    MAX_UINT,
    MIN_INT,
    Duration,
    Timestamp,
    TypeValue,
    Uint,
    check_range,
    type_name,
)

_DOUBLE = r"[+-]?(?:(?i:inf(?:inity)?|nan)|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)"
_WRITTEN = 12  # units for parsing or formatting a number or a time
_TRUE = ("1", "t", "T", "true", "TRUE", "True")
_FALSE = ("0", "f", "F", "false", "FALSE", "False")


def _from_text(name: str, pattern: str, read: Callable[[str], Any]) -> Row:
    expected = re.compile(pattern, re.ASCII)

    def convert(text: str) -> Any:
        with suppress(EvaluationError):
            if len(text) <= 400 and expected.fullmatch(text):
                return read(text)
        raise unconvertible("string", name)

    return f"{name}(string) -> {name}", convert, _WRITTEN


def to_text(value: Any) -> str:
    """Return `value` as `string()` writes it."""
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case Timestamp():
            return written_timestamp(value)
        case Duration():
            return written_duration(value)
        case float():
            return _written_double(value)
        case bytes():
            try:
                return value.decode()
            except UnicodeDecodeError:
                raise EvaluationError("invalid UTF-8 in bytes, cannot convert to string") from None
    return str(int(value))


def _int_of_double(value: float) -> int:
    return check_range(int, value if MIN_INT < value < MAX_INT else math.inf)


def _uint_of_double(value: float) -> Uint:
    return check_range(Uint, value if 0 <= value < MAX_UINT else math.inf)


def _written_double(value: float) -> str:
    """Return the shortest text for `value`, with an exponent where Go's %g has one."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
    exact = Decimal(repr(value)).normalize()
    if not value or -4 <= exact.adjusted() < 6:
        return f"{exact:f}"
    return f"{value:.{len(exact.as_tuple().digits) - 1}e}"


declare(
    _from_text("int", r"[+-]?\d{1,20}", lambda text: check_range(int, int(text))),
    _from_text("uint", r"\d{1,20}", lambda text: check_range(Uint, int(text))),
    _from_text("double", _DOUBLE, float),
    _from_text("bool", "|".join(_TRUE + _FALSE), _TRUE.__contains__),
    ("int(int) -> int; int(uint) -> int", lambda value: check_range(int, value), NO_MORE),
    ("int(double) -> int", _int_of_double, NO_MORE),
    ("uint(I) -> uint", lambda value: check_range(Uint, value), NO_MORE),
    ("uint(double) -> uint", _uint_of_double, NO_MORE),
    ("double(N) -> double", float, NO_MORE),
    ("bytes(string) -> bytes", str.encode, copying),
    ("bool(bool) -> bool; bytes(bytes) -> bytes; dyn(A) -> dyn", lambda value: value, NO_MORE),
    ("type(A) -> type(A)", lambda value: TypeValue(type_name(value)), NO_MORE),
    ("string(string) -> string; string(bool) -> string", to_text, NO_MORE),
    ("string(bytes) -> string", to_text, copying),
    ("string(N) -> string", to_text, _WRITTEN),
    ("string(timestamp) -> string; string(duration) -> string", to_text, _WRITTEN),
)
