"""Kubernetes' `quantity()`: exact amounts such as `500m` or `2Gi`."""

import math
import re
from fractions import Fraction
from functools import lru_cache

from config.quantities import ExactQuantity, parse_exact
from webhook.cel.cost import NO_MORE, parsing
from webhook.cel.errors import EvaluationError
from webhook.cel.functions import declare, declare_order, succeeds
from webhook.cel.values import NAMES

_CALCULATED = 16  # units of a sum or a comparison of fractions
_LIKE = re.compile(r"[+-]?[0-9.]++[eEinumkKMGTP]*+[-+]?[0-9]*+")
# apimachinery's
_FORM = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)

NAMES[ExactQuantity] = _OF = "kubernetes.Quantity"


@lru_cache(maxsize=4096)
def _parse(text: str) -> ExactQuantity:
    """Parse a quantity. Raises EvaluationError if it is invalid."""
    quantity = parse_exact(text)
    if quantity is None:
        raise EvaluationError(
            "unable to parse quantity's suffix" if _LIKE.fullmatch(text) else _FORM
        )
    return quantity


def _sum(one: ExactQuantity, two: ExactQuantity | int, sign: int = 1) -> ExactQuantity:
    other = two if isinstance(two, ExactQuantity) else ExactQuantity(Fraction(two), True)
    return ExactQuantity.of(one.value + sign * other.value, one.is_integer and other.is_integer)


def _difference(one: ExactQuantity, two: ExactQuantity | int) -> ExactQuantity:
    return _sum(one, two, -1)


def _as_integer(quantity: ExactQuantity) -> int:
    if not quantity.is_integer:
        raise EvaluationError("cannot convert value to integer")
    return int(quantity.value)


def _approximate(quantity: ExactQuantity) -> float:
    try:
        return float(quantity.value)
    except OverflowError:
        return math.inf if quantity.value > 0 else -math.inf


declare(
    (f"quantity(string) -> {_OF}", _parse, parsing),
    ("isQuantity(string) -> bool", succeeds(_parse), parsing),
    (f"sign({_OF}) -> int", lambda one: (one.value > 0) - (one.value < 0), 4),
    (f"({_OF}).isInteger() -> bool", lambda one: one.is_integer, NO_MORE),
    (f"({_OF}).asInteger() -> int", _as_integer, 4),
    (f"({_OF}).asApproximateFloat() -> double", _approximate, 4),
    (f"({_OF}).add({_OF}) -> {_OF}; ({_OF}).add(int) -> {_OF}", _sum, _CALCULATED),
    (f"({_OF}).sub({_OF}) -> {_OF}; ({_OF}).sub(int) -> {_OF}", _difference, _CALCULATED),
    *declare_order(_OF, _CALCULATED),
)
