"""cel-go's math extension."""

import math
from collections.abc import Callable
from operator import and_, invert, or_, xor
from typing import Any

from webhook.cel.errors import EvaluationError
from webhook.cel.functions import declare, function, per_item
from webhook.cel.values import MAX_UINT, Uint, checked_int, compare

_NUMBERS = ("int", "uint", "double")


def _extremes(name: str) -> tuple[str, ...]:
    one = [f"{name}({each}) -> {each}" for each in _NUMBERS]
    two = [f"{name}({a}, {b}) -> {a if a == b else 'dyn'}" for a in _NUMBERS for b in _NUMBERS]
    lists = [f"{name}(list({each})) -> {each}" for each in _NUMBERS]
    more = [f"{name}({', '.join(['dyn'] * count)}) -> dyn" for count in range(3, 17)]
    return (*one, *two, *lists, *more)


def _extreme(name: str, values: tuple[Any, ...], worse: int) -> Any:
    items = values[0] if len(values) == 1 and type(values[0]) is list else values
    if not items:
        raise EvaluationError(f"{name}(list) argument must not be empty")
    best = items[0]
    for item in items:
        if type(item) not in {int, Uint, float}:
            raise EvaluationError(f"no such overload: {name}")
        if compare(best, item) == worse:
            best = item
    return best


declare(lambda *values: _extreme("math.@max", values, -1), *_extremes("math.greatest"), cost=per_item)
declare(lambda *values: _extreme("math.@min", values, 1), *_extremes("math.least"), cost=per_item)


def _rounded(call: Callable[[float], float]) -> Callable[[float], float]:
    return lambda value: math.copysign(call(value), value) if math.isfinite(value) else value


def _half_away(value: float) -> float:
    return math.trunc(value + math.copysign(0.5, value)) if abs(value) < 2**52 else value


for _name, _call in (("ceil", math.ceil), ("floor", math.floor), ("trunc", math.trunc), ("round", _half_away)):
    declare(_rounded(_call), f"math.{_name}(double) -> double")
for _name, _test in (("isInf", math.isinf), ("isNaN", math.isnan), ("isFinite", math.isfinite)):
    declare(_test, f"math.{_name}(double) -> bool")
declare(abs, "math.abs(double) -> double")
declare(lambda value: value, "math.abs(uint) -> uint")
declare(lambda value: checked_int(abs(value)), "math.abs(int) -> int")
declare(
    lambda value: value if value != value else type(value)((value > 0) - (value < 0)),
    *(f"math.sign({each}) -> {each}" for each in _NUMBERS),
)
declare(
    lambda value: math.nan if value < 0 else math.sqrt(value),
    *(f"math.sqrt({each}) -> double" for each in _NUMBERS),
)
for _name, _bits in (("bitAnd", and_), ("bitOr", or_), ("bitXor", xor)):
    for _each in ("int", "uint"):
        declare(
            lambda one, two, bits=_bits: type(one)(bits(int(one), int(two))),
            f"math.{_name}({_each}, {_each}) -> {_each}",
        )
declare(invert, "math.bitNot(int) -> int")
declare(lambda value: Uint(MAX_UINT ^ value), "math.bitNot(uint) -> uint")


@function("math.bitShiftLeft(int, int) -> int", "math.bitShiftLeft(uint, int) -> uint")
def _shift_left(value: int, count: int) -> int:
    return _shifted(value, count, "bitShiftLeft", (int(value) << min(max(count, 0), 64)) & MAX_UINT)


@function("math.bitShiftRight(int, int) -> int", "math.bitShiftRight(uint, int) -> uint")
def _shift_right(value: int, count: int) -> int:
    return _shifted(value, count, "bitShiftRight", (int(value) & MAX_UINT) >> min(max(count, 0), 64))


def _shifted(value: int, count: int, name: str, bits: int) -> int:
    if count < 0:
        raise EvaluationError(f"math.{name}() negative offset: {count}")
    return Uint(bits) if type(value) is Uint else bits - 2**64 if bits >= 2**63 else bits
