"""Conversions between types: `int()`, `uint()`, `double()`, `string()`, `bytes()`, `bool()`, `dyn()`, `type()`."""

import math
import re
from decimal import Decimal
from typing import Any

from webhook.cel.errors import EvaluationError
from webhook.cel.functions import declare, function, linear
from webhook.cel.library.times import SECOND, written_duration, written_timestamp
from webhook.cel.values import MAX_INT, MAX_UINT, MIN_INT, Duration, Timestamp, TypeValue, Uint, type_name

_BOOLS = {"1": True, "t": True, "T": True, "true": True, "TRUE": True, "True": True}
_BOOLS |= {"0": False, "f": False, "F": False, "false": False, "FALSE": False, "False": False}
_INT = re.compile(r"[+-]?\d{1,20}", re.ASCII)
_DOUBLE = re.compile(r"[+-]?(?:inf(?:inity)?|nan|(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)", re.ASCII | re.IGNORECASE)


def _error(from_: str, to: str, found: Any = "") -> EvaluationError:
    return EvaluationError(f"type conversion error from '{from_}' to '{to}'{f': {found}' if found else ''}")


@function("int(int) -> int", "int(uint) -> int")
def _int(value: int) -> int:
    if value > MAX_INT:
        raise EvaluationError("integer overflow")
    return int(value)


@function("int(double) -> int")
def _int_of_double(value: float) -> int:
    if math.isfinite(value) and MIN_INT < value < MAX_INT:
        return int(value)
    raise EvaluationError("integer overflow")


@function("int(string) -> int")
def _int_of_text(value: str) -> int:
    if _INT.fullmatch(value) and MIN_INT <= int(value) <= MAX_INT:
        return int(value)
    raise _error("string", "int")


declare(lambda value: int(value) // SECOND, "int(timestamp) -> int")
declare(int, "int(duration) -> int")


@function("uint(uint) -> uint", "uint(int) -> uint")
def _uint(value: int) -> Uint:
    if value < 0:
        raise EvaluationError("unsigned integer overflow")
    return Uint(value)


@function("uint(double) -> uint")
def _uint_of_double(value: float) -> Uint:
    if math.isfinite(value) and 0 <= value < MAX_UINT:
        return Uint(value)
    raise EvaluationError("unsigned integer overflow")


@function("uint(string) -> uint")
def _uint_of_text(value: str) -> Uint:
    if _INT.fullmatch(value) and value[0] not in "+-" and int(value) <= MAX_UINT:
        return Uint(value)
    raise _error("string", "uint")


declare(float, "double(double) -> double", "double(int) -> double", "double(uint) -> double")


@function("double(string) -> double")
def _double_of_text(value: str) -> float:
    if len(value) <= 400 and _DOUBLE.fullmatch(value):
        return float(value)
    raise _error("string", "double")


@function("bool(string) -> bool")
def _bool_of_text(value: str) -> bool:
    if value in _BOOLS:
        return _BOOLS[value]
    raise _error("string", "bool")


declare(lambda value: value, "bytes(bytes) -> bytes", "bool(bool) -> bool", "dyn(A) -> dyn")
declare(str.encode, "bytes(string) -> bytes", cost=linear)
declare(lambda value: TypeValue(type_name(value)), "type(A) -> type(A)")


_WRITTEN = ("string", "bool", "int", "uint", "double", "bytes", "timestamp", "duration")


@function(*(f"string({name}) -> string" for name in _WRITTEN))
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
            return written_double(value)
        case bytes():
            try:
                return value.decode()
            except UnicodeDecodeError:
                raise EvaluationError("invalid UTF-8 in bytes, cannot convert to string") from None
    return str(int(value))


def written_double(value: float) -> str:
    """Return the shortest text that says `value`, as Go's %g."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(exponent, int)
    text, point = "".join(map(str, digits)), len(digits) + exponent
    prefix = "-" if sign else ""
    if not value:
        return f"{prefix}0"
    if not -4 < point <= 6:  # where %g of the shortest text has an exponent
        return f"{prefix}{text[0]}{'.' if text[1:] else ''}{text[1:]}e{'-' if point < 1 else '+'}{abs(point - 1):02}"
    if point <= 0:
        return f"{prefix}0.{'0' * -point}{text}"
    return f"{prefix}{text.ljust(point, '0')[:point]}{'.' if text[point:] else ''}{text[point:]}"
