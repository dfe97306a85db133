"""Conversions between types: `int()`, `uint()`, `double()`, `string()`, `bytes()`, `bool()`, `dyn()`, `type()`."""

import math
import re
from decimal import Decimal
from typing import Any

from webhook.cel.errors import EvaluationError
from webhook.cel.functions import function, linear
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

_BOOLS = dict.fromkeys(("1", "t", "T", "true", "TRUE", "True"), True)
_BOOLS |= dict.fromkeys(("0", "f", "F", "false", "FALSE", "False"), False)
_INT = re.compile(r"[+-]?\d{1,20}", re.ASCII)
_DOUBLE = re.compile(r"[+-]?(?:inf(?:inity)?|nan|(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)", re.ASCII | re.IGNORECASE)


def _unreadable(to: str) -> EvaluationError:
    return EvaluationError(f"type conversion error from 'string' to '{to}'")


function("int(int) -> int", "int(uint) -> int")(lambda value: checked(int, value))
function("int(timestamp) -> int")(lambda value: int(value) // SECOND)
function("int(duration) -> int")(int)
function("uint(uint) -> uint", "uint(int) -> uint")(lambda value: checked(Uint, value))
function("double(N) -> double")(float)
function("bool(bool) -> bool", "bytes(bytes) -> bytes", "dyn(A) -> dyn")(lambda value: value)
function("bytes(string) -> bytes", cost=linear)(str.encode)
function("type(A) -> type(A)")(lambda value: TypeValue(type_name(value)))


@function("int(double) -> int")
def _int_of_double(value: float) -> int:
    return checked(int, value if MIN_INT < value < MAX_INT else math.inf)


@function("uint(double) -> uint")
def _uint_of_double(value: float) -> Uint:
    return checked(Uint, value if 0 <= value < MAX_UINT else math.inf)


@function("int(string) -> int")
def _int_of_text(value: str) -> int:
    if _INT.fullmatch(value) and MIN_INT <= int(value) <= MAX_INT:
        return int(value)
    raise _unreadable("int")


@function("uint(string) -> uint")
def _uint_of_text(value: str) -> Uint:
    if _INT.fullmatch(value) and value[0] not in "+-" and int(value) <= MAX_UINT:
        return Uint(value)
    raise _unreadable("uint")


@function("double(string) -> double")
def _double_of_text(value: str) -> float:
    if len(value) <= 400 and _DOUBLE.fullmatch(value):
        return float(value)
    raise _unreadable("double")


@function("bool(string) -> bool")
def _bool_of_text(value: str) -> bool:
    if value in _BOOLS:
        return _BOOLS[value]
    raise _unreadable("bool")


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
