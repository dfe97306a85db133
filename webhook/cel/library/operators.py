"""Arithmetic, comparison, `in` and sizes of cel-spec, and cel-go's math extension."""

import math
import operator
from collections.abc import Callable
from functools import reduce
from typing import Any

from webhook.cel.cost import COMPARED, COPIED, NO_MORE, READ, WALKED, Meter, comparing, searching
from webhook.cel.errors import EvaluationError
from webhook.cel.functions import Row, declare
from webhook.cel.values import (
    MAX_UINT,
    MIN_INT,
    NONE,
    NUMBERS,
    Duration,
    Timestamp,
    Uint,
    check_range,
    compare,
    equal,
    find,
)


def _exact(
    calculate: Callable[[int, int], int], kind: type[int] | None = None
) -> Callable[[int, int], int]:
    """Return a calculation whose result must be in range, by default of the first operand."""
    return lambda one, two: check_range(kind or type(one), calculate(int(one), int(two)))


def _divide(one: int, two: int) -> int:
    if not two:
        raise EvaluationError("division by zero")
    quotient = abs(int(one)) // abs(int(two))
    return check_range(type(one), quotient if (one < 0) == (two < 0) else -quotient)


def _divide_double(one: float, two: float) -> float:
    if two:
        return one / two
    sign = math.copysign(1.0, one) * math.copysign(1.0, two)
    return math.nan if not one or math.isnan(one) else sign * math.inf


def _remainder(one: int, two: int) -> int:
    if not two:
        raise EvaluationError("modulus by zero")
    if one == MIN_INT and two == -1:
        raise EvaluationError("integer overflow")
    remainder = abs(int(one)) % abs(int(two))
    return type(one)(-remainder if one < 0 else remainder)


def _in(meter: Meter, item: Any, items: list[Any]) -> bool:
    if type(item) is str:
        if units := len(items) * (1 + (len(item) >> COMPARED)) >> 2:
            meter.charge(units)
        return item in items
    for candidate in items:
        meter.charge(2)
        if equal(meter, item, candidate):
            return True
    return False


def _comparing_part(_: str, part: str) -> int:
    return len(part) >> COMPARED


def _joining(one: Any, two: Any) -> int:
    """Cost of a concatenation: the size of its result."""
    return len(one) + len(two) >> (READ if type(one) is list else COPIED)


def _comparison(name: str, call: Callable[[Any, Any], bool]) -> list[Row]:
    short = ("N, M", "bool, bool", "timestamp, timestamp", "duration, duration")
    long = ("string, string", "bytes, bytes")
    return [
        *((f"_{name}_({types}) -> bool", call, NO_MORE) for types in short),
        *((f"_{name}_({types}) -> bool", call, comparing) for types in long),
    ]


def _extreme(name: str, worse: int) -> Row:
    def extreme(meter: Meter, *values: Any) -> Any:
        items = values[0] if type(values[0]) is list else values
        meter.charge(4 * len(items))
        if not items or any(type(item) not in NUMBERS for item in items):
            raise EvaluationError(f"{name}() takes numbers, one at least")
        return reduce(lambda best, item: item if compare(best, item) == worse else best, items)

    several = f"{name}(N, M) -> dyn; {name}(dyn, dyn, dyn...) -> dyn"
    return f"{name}(list(N)) -> N; {name}(N) -> N; {several}", extreme, WALKED


def _rounding(name: str, call: Callable[[float], float]) -> Row:
    return (
        f"math.{name}(double) -> double",
        lambda value: math.copysign(call(value), value) if math.isfinite(value) else value,
        NO_MORE,
    )


def _round(value: float) -> float:
    return math.trunc(value + math.copysign(0.5, value)) if abs(value) < 2**52 else value


def _sign(value: Any) -> Any:
    return value if value != value else type(value)((value > 0) - (value < 0))


def _bitwise(name: str, call: Callable[[int, int], int]) -> Row:
    return f"math.{name}(I, I) -> I", lambda one, two: type(one)(call(int(one), int(two))), 2


def _shift(name: str, call: Callable[[int, int], int]) -> Row:
    def shift(value: int, count: int) -> int:
        if count < 0:
            raise EvaluationError(f"math.{name}() negative offset: {count}")
        bits = call(int(value) & MAX_UINT, min(count, 64)) & MAX_UINT
        return Uint(bits) if type(value) is Uint else bits - 2**64 if bits >= 2**63 else bits

    return f"math.{name}(I, int) -> I", shift, 2


_OF_INTEGERS = (
    "_{0}_(I, I) -> I; _{0}_(duration, duration) -> duration; _{0}_(timestamp, duration) -> "
    "timestamp"
).format
_JOINED = (
    "_+_(string, string) -> string; _+_(bytes, bytes) -> bytes; _+_(list(A), list(A)) -> list(A)"
)

declare(
    *_comparison("<", lambda one, two: compare(one, two) < 0),
    *_comparison("<=", lambda one, two: compare(one, two) <= 0),
    *_comparison(">", lambda one, two: compare(one, two) > 0),
    *_comparison(">=", lambda one, two: compare(one, two) >= 0),
    ("!_(bool) -> bool", operator.not_, NO_MORE),
    ("-_(int) -> int", lambda value: check_range(int, -value), NO_MORE),
    ("-_(double) -> double", operator.neg, NO_MORE),
    (_OF_INTEGERS("+"), _exact(operator.add), NO_MORE),
    ("_+_(duration, timestamp) -> timestamp", _exact(operator.add, Timestamp), NO_MORE),
    ("_+_(double, double) -> double", operator.add, NO_MORE),
    (_JOINED, operator.add, _joining),
    (_OF_INTEGERS("-"), _exact(operator.sub), NO_MORE),
    ("_-_(timestamp, timestamp) -> duration", _exact(operator.sub, Duration), NO_MORE),
    ("_-_(double, double) -> double", operator.sub, NO_MORE),
    ("_*_(I, I) -> I", _exact(operator.mul), NO_MORE),
    ("_*_(double, double) -> double", operator.mul, NO_MORE),
    ("_/_(I, I) -> I", _divide, NO_MORE),
    ("_/_(double, double) -> double", _divide_double, NO_MORE),
    ("_%_(I, I) -> I", _remainder, NO_MORE),
    ("@in(A, list(A)) -> bool", _in, WALKED),
    ("@in(A, map(A, B)) -> bool", lambda item, entries: find(entries, item) is not NONE, NO_MORE),
    *(
        (f"size({type}) -> int; ({type}).size() -> int", len, NO_MORE)
        for type in ("string", "bytes", "list(A)", "map(A, B)")
    ),
    ("(string).startsWith(string) -> bool", str.startswith, _comparing_part),
    ("(string).endsWith(string) -> bool", str.endswith, _comparing_part),
    ("(string).contains(string) -> bool", str.__contains__, searching),
)

declare(
    _extreme("math.greatest", -1),
    _extreme("math.least", 1),
    _rounding("ceil", math.ceil),
    _rounding("floor", math.floor),
    _rounding("trunc", math.trunc),
    _rounding("round", _round),
    ("math.isInf(double) -> bool", math.isinf, NO_MORE),
    ("math.isNaN(double) -> bool", math.isnan, NO_MORE),
    ("math.isFinite(double) -> bool", math.isfinite, NO_MORE),
    ("math.abs(double) -> double", abs, NO_MORE),
    ("math.abs(I) -> I", lambda value: check_range(type(value), abs(value)), NO_MORE),
    ("math.sign(N) -> N", _sign, NO_MORE),
    ("math.sqrt(N) -> double", lambda value: math.nan if value < 0 else math.sqrt(value), NO_MORE),
    _bitwise("bitAnd", operator.and_),
    _bitwise("bitOr", operator.or_),
    _bitwise("bitXor", operator.xor),
    ("math.bitNot(int) -> int", operator.invert, NO_MORE),
    ("math.bitNot(uint) -> uint", lambda value: Uint(MAX_UINT ^ value), NO_MORE),
    _shift("bitShiftLeft", operator.lshift),
    _shift("bitShiftRight", operator.rshift),
)
