"""Kubernetes' `quantity()`: exact amounts such as `500m` or `2Gi`."""

import re
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from math import ceil

from config.quantities import SUFFIXES
from webhook.cel.errors import EvaluationError
from webhook.cel.functions import declare, ordered, parsing, succeeds
from webhook.cel.values import MAX_INT, MIN_INT, NAMES

_QUANTITY = re.compile(
    r"([+-]?)(?=\.?\d|[numkMGTPE])(\d{0,64})(?:\.(\d{0,64}))?(?:[eE]([+-]?\d{1,3})|([KMGTPE]i|[numkMGTPE]?))",
    re.ASCII,
)
_LIKE = re.compile(r"[+-]?[0-9.]+[eEinumkKMGTP]*[-+]?[0-9]*")
# apimachinery's
_FORM = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)
_POWERS = {
    suffix: 3 * power for power, suffix in enumerate(("n", "u", "m", "", *"kMGTPE"), start=-3)
}  # of ten
NANO = 10**9


@dataclass(frozen=True, slots=True, order=True)
class Quantity:
    """An amount; `is_integer` where it was written as a whole number."""

    value: Fraction
    is_integer: bool = field(compare=False)


NAMES[Quantity] = _OF = "kubernetes.Quantity"


@lru_cache(maxsize=4096)
def parse_quantity(text: str) -> Quantity:
    """Return the amount that `text` says. EvaluationError where it says none."""
    match = _QUANTITY.fullmatch(text)
    if match is None:
        raise EvaluationError(
            "unable to parse quantity's suffix" if _LIKE.fullmatch(text) else _FORM
        )
    sign, whole, part, exponent, suffix = match.groups(default="")
    scale = int(exponent or 0) - len(part)
    exact = int(f"{whole}{part}" or 0) * Fraction(10) ** scale * SUFFIXES[suffix]
    value = Fraction(ceil(exact * NANO), NANO) * (-1 if sign == "-" else 1)
    is_integer = not part if suffix.endswith("i") else scale + _POWERS[suffix] >= 0
    return _amount(value, is_integer and value.denominator == 1)


def _amount(value: Fraction, is_integer: bool) -> Quantity:
    return Quantity(value, is_integer and MIN_INT <= value <= MAX_INT)


def _sum(one: Quantity, two: Quantity | int, sign: int = 1) -> Quantity:
    other = two if isinstance(two, Quantity) else Quantity(Fraction(two), True)
    return _amount(one.value + sign * other.value, one.is_integer and other.is_integer)


def _as_integer(quantity: Quantity) -> int:
    if not quantity.is_integer:
        raise EvaluationError("cannot convert value to integer")
    return int(quantity.value)


declare(
    (f"quantity(string) -> {_OF}", parse_quantity, parsing),
    ("isQuantity(string) -> bool", succeeds(parse_quantity), parsing),
    (f"sign({_OF}) -> int", lambda one: (one.value > 0) - (one.value < 0)),
    (f"({_OF}).isInteger() -> bool", lambda one: one.is_integer),
    (f"({_OF}).asInteger() -> int", _as_integer),
    (f"({_OF}).asApproximateFloat() -> double", lambda one: float(one.value)),
    (f"({_OF}).add({_OF}) -> {_OF}; ({_OF}).add(int) -> {_OF}", _sum),
    (
        f"({_OF}).sub({_OF}) -> {_OF}; ({_OF}).sub(int) -> {_OF}",
        lambda one, two: _sum(one, two, -1),
    ),
    *ordered(_OF),
)
