"""Conversions between types: `int()`, `uint()`, `double()`, `string()`, `bytes()`, `bool()`, `dyn()`, `type()`."""

import math
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from webhook.cel.errors import EvaluationError
from webhook.cel.functions import fault, function, weigh
from webhook.cel.library.times import written_duration, written_timestamp
from webhook.cel.values import (
    MAX_INT,
    MAX_UINT,
    MIN_INT,
    SECOND,
    Duration,
    Timestamp,
    TypeValue,
    Uint,
    checked,
    type_name,
)

_TRUE = ("1", "t", "T", "true", "TRUE", "True")
_BOOL = "[01tTfF]|true|TRUE|True|false|FALSE|False"
_DOUBLE = r"[+-]?(?:(?i:inf(?:inity)?|nan)|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)"


def _from_text(name: str, pattern: str, read: Callable[[str], Any]) -> None:
    expected = re.compile(pattern, re.ASCII)

    @function(f"{name}(string) -> {name}")
    def converted(text: str) -> Any:
        if len(text) <= 400 and expected.fullmatch(text) and fault(read, text) is None:
            return read(text)
        raise EvaluationError(f"type conversion error from 'string' to '{name}'")


_from_text("int", r"[+-]?\d{1,20}", lambda text: checked(int, int(text)))
_from_text("uint", r"\d{1,20}", lambda text: checked(Uint, int(text)))
_from_text("double", _DOUBLE, float)
_from_text("bool", _BOOL, lambda text: text in _TRUE)
function("int(int) -> int", "int(uint) -> int")(lambda value: checked(int, value))
function("int(timestamp) -> int")(lambda value: int(value) // SECOND)
function("int(duration) -> int")(int)
function("uint(uint) -> uint", "uint(int) -> uint")(lambda value: checked(Uint, value))
function("double(N) -> double")(float)
function("bool(bool) -> bool", "bytes(bytes) -> bytes", "dyn(A) -> dyn")(lambda value: value)
function("bytes(string) -> bytes", cost=weigh)(str.encode)
function("type(A) -> type(A)")(lambda value: TypeValue(type_name(value)))


@function("int(double) -> int")
def _int_of_double(value: float) -> int:
    return checked(int, value if MIN_INT < value < MAX_INT else math.inf)


@function("uint(double) -> uint")
def _uint_of_double(value: float) -> Uint:
    return checked(Uint, value if 0 <= value < MAX_UINT else math.inf)


@function("string(C) -> string")
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


def _written_double(value: float) -> str:
    """Return the shortest text that says `value`, with an exponent where Go's %g has one."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
    exact = Decimal(repr(value)).normalize()
    if not value or -4 <= exact.adjusted() < 6:
        return f"{exact:f}"
    return f"{value:.{len(exact.as_tuple().digits) - 1}e}"
