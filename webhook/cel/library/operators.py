"""Arithmetic, comparison, `in` and sizes (cel-spec, "Standard definitions")."""

import math
import operator
from collections.abc import Callable
from typing import Any

from webhook.cel.errors import EvaluationError
from webhook.cel.functions import function, weigh
from webhook.cel.values import MIN_INT, NONE, Duration, Timestamp, Uint, checked, compare, equal, find


def _text_compared(one: Any, _: Any) -> int:
    return len(one) >> 8 if type(one) is str else 0


def _comparison(sign: str, holds: Callable[[int, int], bool]) -> None:
    called = function(f"_{sign}_(N, M) -> bool", f"_{sign}_(C, C) -> bool", cost=_text_compared)
    called(lambda one, two: holds(compare(one, two), 0))


_comparison("<", operator.lt)
_comparison("<=", operator.le)
_comparison(">", operator.gt)
_comparison(">=", operator.ge)
function("!_(bool) -> bool")(operator.not_)
function("-_(int) -> int")(lambda value: checked(int, -value))
function("-_(double) -> double")(operator.neg)


def _exact(kind: type[int], calculate: Callable[[int, int], int], *signatures: str) -> None:
    function(*signatures)(lambda one, two: checked(kind, calculate(int(one), int(two))))


for _sign, _calculate in (("+", operator.add), ("-", operator.sub), ("*", operator.mul)):
    _exact(int, _calculate, f"_{_sign}_(int, int) -> int")
    _exact(Uint, _calculate, f"_{_sign}_(uint, uint) -> uint")
    function(f"_{_sign}_(double, double) -> double")(_calculate)
_exact(Duration, operator.add, "_+_(duration, duration) -> duration")
_exact(Timestamp, operator.add, "_+_(timestamp, duration) -> timestamp", "_+_(duration, timestamp) -> timestamp")
_exact(Duration, operator.sub, "_-_(duration, duration) -> duration", "_-_(timestamp, timestamp) -> duration")
_exact(Timestamp, operator.sub, "_-_(timestamp, duration) -> timestamp")
_JOINED = ("_+_(string, string) -> string", "_+_(bytes, bytes) -> bytes", "_+_(list(A), list(A)) -> list(A)")
function(*_JOINED, cost=weigh)(operator.add)


@function("_/_(I, I) -> I")
def _divide(one: int, two: int) -> int:
    if not two:
        raise EvaluationError("division by zero")
    found = abs(int(one)) // abs(int(two))
    return checked(type(one), found if (one < 0) == (two < 0) else -found)


@function("_/_(double, double) -> double")
def _divide_double(one: float, two: float) -> float:
    if two:
        return one / two
    sign = math.copysign(1.0, one) * math.copysign(1.0, two)
    return math.nan if not one or math.isnan(one) else sign * math.inf


@function("_%_(I, I) -> I")
def _remainder(one: int, two: int) -> int:
    if not two:
        raise EvaluationError("modulus by zero")
    if one == MIN_INT and two == -1:
        raise EvaluationError("integer overflow")
    found = abs(int(one)) % abs(int(two))
    return type(one)(-found if one < 0 else found)


def _contained(item: Any, items: Any) -> int:
    if isinstance(items, dict):
        return 0
    return len(items) >> 1 if type(item) is not list and type(item) is not dict else weigh(items) * 2


@function("@in(A, list(A)) -> bool", "@in(A, map(A, B)) -> bool", cost=_contained)
def _in(item: Any, container: Any) -> bool:
    if isinstance(container, dict):
        return find(container, item) is not NONE
    return item in container if type(item) is str else any(equal(item, each) for each in container)


for _sized in ("string", "bytes", "list(A)", "map(A, B)"):
    function(f"size({_sized}) -> int", f"({_sized}).size() -> int")(len)
function("(string).startsWith(string) -> bool", cost=_text_compared)(str.startswith)
function("(string).endsWith(string) -> bool", cost=_text_compared)(str.endswith)
function("(string).contains(string) -> bool", cost=weigh)(str.__contains__)
