"""cel-go's math extension."""

import math
import operator
from collections.abc import Callable
from typing import Any

from webhook.cel.errors import EvaluationError, no_overload
from webhook.cel.functions import Row, declare, weigh
from webhook.cel.values import MAX_UINT, NUMBERS, Uint, checked, compare


def _extreme(name: str, shown: str, worse: int) -> Row:
    def extreme(*values: Any) -> Any:
        items = values[0] if len(values) == 1 and type(values[0]) is list else values
        if not items:
            raise EvaluationError(f"{shown}(list) argument must not be empty")
        best = items[0]
        for item in items:
            if type(item) not in NUMBERS:
                raise no_overload(shown)
            best = item if compare(best, item) == worse else best
        return best

    signatures = f"{name}(list(N)) -> N; {name}(N) -> N; {name}(N, M) -> dyn; {name}(dyn, dyn, dyn...) -> dyn"
    return signatures, extreme, weigh


def _rounding(name: str, call: Callable[[float], float]) -> Row:
    return (
        f"math.{name}(double) -> double",
        lambda value: math.copysign(call(value), value) if math.isfinite(value) else value,
    )


def _bitwise(name: str, call: Callable[[int, int], int]) -> Row:
    return f"math.{name}(I, I) -> I", lambda one, two: type(one)(call(int(one), int(two)))


def _shift(name: str, call: Callable[[int, int], int]) -> Row:
    def shifted(value: int, count: int) -> int:
        if count < 0:
            raise EvaluationError(f"math.{name}() negative offset: {count}")
        bits = call(int(value) & MAX_UINT, min(count, 64)) & MAX_UINT
        return Uint(bits) if type(value) is Uint else bits - 2**64 if bits >= 2**63 else bits

    return f"math.{name}(I, int) -> I", shifted


declare(
    _extreme("math.greatest", "math.@max", -1),
    _extreme("math.least", "math.@min", 1),
    _rounding("ceil", math.ceil),
    _rounding("floor", math.floor),
    _rounding("trunc", math.trunc),
    _rounding("round", lambda value: math.trunc(value + math.copysign(0.5, value)) if abs(value) < 2**52 else value),
    ("math.isInf(double) -> bool", math.isinf),
    ("math.isNaN(double) -> bool", math.isnan),
    ("math.isFinite(double) -> bool", math.isfinite),
    ("math.abs(double) -> double", abs),
    ("math.abs(I) -> I", lambda value: checked(type(value), abs(value))),
    ("math.sign(N) -> N", lambda value: value if value != value else type(value)((value > 0) - (value < 0))),
    ("math.sqrt(N) -> double", lambda value: math.nan if value < 0 else math.sqrt(value)),
    _bitwise("bitAnd", operator.and_),
    _bitwise("bitOr", operator.or_),
    _bitwise("bitXor", operator.xor),
    ("math.bitNot(int) -> int", operator.invert),
    ("math.bitNot(uint) -> uint", lambda value: Uint(MAX_UINT ^ value)),
    _shift("bitShiftLeft", operator.lshift),
    _shift("bitShiftRight", operator.rshift),
)
