"""Arithmetic, comparison, `in`, indexes and sizes (cel-spec, "Standard definitions")."""

import math
from operator import add, mul, not_, sub
from typing import Any

from webhook.cel.errors import EvaluationError
from webhook.cel.functions import declare, function, linear, per_item, weigh
from webhook.cel.library.times import checked_duration, checked_timestamp
from webhook.cel.values import (
    MIN_INT,
    NONE,
    Uint,
    checked_int,
    checked_uint,
    compare,
    equal,
    find,
    index,
    optional_index,
)

_PAIRS = [(one, two) for one in ("int", "uint", "double") for two in ("int", "uint", "double")]
_PAIRS += [(each, each) for each in ("bool", "string", "bytes", "timestamp", "duration")]


def _text_compared(one: Any, _: Any) -> int:
    return len(one) >> 8 if type(one) is str else 0


def _comparison(operator: str, call: Any) -> None:
    declare(call, *(f"_{operator}_({one}, {two}) -> bool" for one, two in _PAIRS), cost=_text_compared)


_comparison("<", lambda one, two: compare(one, two) < 0)
_comparison("<=", lambda one, two: compare(one, two) <= 0)
_comparison(">", lambda one, two: compare(one, two) > 0)
_comparison(">=", lambda one, two: compare(one, two) >= 0)
declare(equal, "_==_(A, A) -> bool")
declare(lambda one, two: not equal(one, two), "_!=_(A, A) -> bool")
declare(not_, "!_(bool) -> bool")
declare(lambda value: checked_int(-value), "-_(int) -> int")
declare(lambda value: -value, "-_(double) -> double")

for _sign, _call in (("+", add), ("-", sub), ("*", mul)):
    declare(lambda one, two, call=_call: checked_int(call(one, two)), f"_{_sign}_(int, int) -> int")
    declare(lambda one, two, call=_call: checked_uint(call(int(one), int(two))), f"_{_sign}_(uint, uint) -> uint")
    declare(_call, f"_{_sign}_(double, double) -> double")
declare(
    add,
    "_+_(string, string) -> string",
    "_+_(bytes, bytes) -> bytes",
    "_+_(list(A), list(A)) -> list(A)",
    cost=per_item,
)
declare(
    lambda one, two: checked_timestamp(int(one) + int(two)),
    "_+_(timestamp, duration) -> timestamp",
    "_+_(duration, timestamp) -> timestamp",
)
declare(lambda one, two: checked_duration(int(one) + int(two)), "_+_(duration, duration) -> duration")
declare(
    lambda one, two: checked_duration(int(one) - int(two)),
    "_-_(timestamp, timestamp) -> duration",
    "_-_(duration, duration) -> duration",
)
declare(lambda one, two: checked_timestamp(int(one) - int(two)), "_-_(timestamp, duration) -> timestamp")


@function("_/_(int, int) -> int", "_/_(uint, uint) -> uint")
def _divide(one: int, two: int) -> int:
    if not two:
        raise EvaluationError("division by zero")
    found = abs(int(one)) // abs(int(two))
    return Uint(found) if type(one) is Uint else checked_int(found if (one < 0) == (two < 0) else -found)


@function("_/_(double, double) -> double")
def _divide_double(one: float, two: float) -> float:
    if two:
        return one / two
    sign = math.copysign(1.0, one) * math.copysign(1.0, two)
    return math.nan if not one or math.isnan(one) else sign * math.inf


@function("_%_(int, int) -> int", "_%_(uint, uint) -> uint")
def _remainder(one: int, two: int) -> int:
    if not two:
        raise EvaluationError("modulus by zero")
    if one == MIN_INT and two == -1:
        raise EvaluationError("integer overflow")
    found = abs(int(one)) % abs(int(two))
    return type(one)(-found if one < 0 else found)


def _contained(item: Any, items: Any) -> int:
    return len(items) >> 2 if type(item) is not list and type(item) is not dict else weigh(items) * 2


@function("@in(A, list(A)) -> bool", "@in(A, map(A, B)) -> bool", cost=_contained)
def _in(item: Any, container: Any) -> bool:
    if isinstance(container, dict):
        return find(container, item) is not NONE
    return item in container if type(item) is str else any(equal(item, each) for each in container)


_INDEXED = "list(A), int", "map(A, B), A", "optional_type(list(A)), int", "optional_type(map(A, B)), A"
for _args, _result in zip(_INDEXED, ("A", "B", "A", "B"), strict=True):
    _optional = f"optional_type({_result})"
    declare(index, f"_[_]({_args}) -> {_optional if _args.startswith('opt') else _result}")
    declare(optional_index, f"_[?_]({_args}) -> {_optional}")

for _sized in ("string", "bytes", "list(A)", "map(A, B)"):
    declare(len, f"size({_sized}) -> int", f"({_sized}).size() -> int")
declare(str.startswith, "(string).startsWith(string) -> bool", cost=_text_compared)
declare(str.endswith, "(string).endsWith(string) -> bool", cost=_text_compared)
declare(str.__contains__, "(string).contains(string) -> bool", cost=linear)
