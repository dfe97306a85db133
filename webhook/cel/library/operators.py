"""Arithmetic, comparison, `in` and sizes (cel-spec, "Standard definitions")."""

import math
import operator
from collections.abc import Callable
from typing import Any

from webhook.cel.errors import EvaluationError
from webhook.cel.functions import declare, weigh
from webhook.cel.values import MIN_INT, NONE, Duration, Timestamp, checked, compare, equal, find


def _exact(calculate: Callable[[int, int], int], kind: type[int] | None = None) -> Callable[[int, int], int]:
    """Return a calculation whose result must be in the range of `kind`, by default the type of the first operand."""
    return lambda one, two: checked(kind or type(one), calculate(int(one), int(two)))


def _divide(one: int, two: int) -> int:
    if not two:
        raise EvaluationError("division by zero")
    found = abs(int(one)) // abs(int(two))
    return checked(type(one), found if (one < 0) == (two < 0) else -found)


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
    found = abs(int(one)) % abs(int(two))
    return type(one)(-found if one < 0 else found)


def _in(item: Any, container: Any) -> bool:
    if isinstance(container, dict):
        return find(container, item) is not NONE
    return item in container if type(item) is str else any(equal(item, each) for each in container)


def _cost_of_in(item: Any, items: Any) -> int:
    if isinstance(items, dict):
        return 0
    return len(items) >> 1 if type(item) is not list and type(item) is not dict else weigh(items) * 2


def _cost_of_text(one: Any, _: Any) -> int:
    return len(one) >> 8 if type(one) is str else 0


_COMPARED = "_{0}_(N, M) -> bool; _{0}_(C, C) -> bool".format
_OF_INTEGERS = "_{0}_(I, I) -> I; _{0}_(duration, duration) -> duration; _{0}_(timestamp, duration) -> timestamp".format
_JOINED = "_+_(string, string) -> string; _+_(bytes, bytes) -> bytes; _+_(list(A), list(A)) -> list(A)"

declare(
    (_COMPARED("<"), lambda one, two: compare(one, two) < 0, _cost_of_text),
    (_COMPARED("<="), lambda one, two: compare(one, two) <= 0, _cost_of_text),
    (_COMPARED(">"), lambda one, two: compare(one, two) > 0, _cost_of_text),
    (_COMPARED(">="), lambda one, two: compare(one, two) >= 0, _cost_of_text),
    ("!_(bool) -> bool", operator.not_),
    ("-_(int) -> int", lambda value: checked(int, -value)),
    ("-_(double) -> double", operator.neg),
    (_OF_INTEGERS("+"), _exact(operator.add)),
    ("_+_(duration, timestamp) -> timestamp", _exact(operator.add, Timestamp)),
    ("_+_(double, double) -> double", operator.add),
    (_JOINED, operator.add, weigh),
    (_OF_INTEGERS("-"), _exact(operator.sub)),
    ("_-_(timestamp, timestamp) -> duration", _exact(operator.sub, Duration)),
    ("_-_(double, double) -> double", operator.sub),
    ("_*_(I, I) -> I", _exact(operator.mul)),
    ("_*_(double, double) -> double", operator.mul),
    ("_/_(I, I) -> I", _divide),
    ("_/_(double, double) -> double", _divide_double),
    ("_%_(I, I) -> I", _remainder),
    ("@in(A, list(A)) -> bool; @in(A, map(A, B)) -> bool", _in, _cost_of_in),
    *((f"size({each}) -> int; ({each}).size() -> int", len) for each in ("string", "bytes", "list(A)", "map(A, B)")),
    ("(string).startsWith(string) -> bool", str.startswith, _cost_of_text),
    ("(string).endsWith(string) -> bool", str.endswith, _cost_of_text),
    ("(string).contains(string) -> bool", str.__contains__, weigh),
)
