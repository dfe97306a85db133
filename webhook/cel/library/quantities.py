"""Kubernetes' `quantity()`: exact amounts such as `500m` or `2Gi`."""

import re
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from math import ceil

from config.quantities import SUFFIXES
from webhook.cel.errors import EvaluationError
from webhook.cel.functions import declare, declare_order, function
from webhook.cel.library.network import is_valid
from webhook.cel.values import MAX_INT, MIN_INT, Opaque

_QUANTITY = re.compile(
    r"([+-]?)(?=\.?\d|[numkMGTPE])(\d{0,64})(?:\.(\d{0,64}))?(?:[eE]([+-]?\d{1,3})|([KMGTPE]i|[numkMGTPE]?))", re.ASCII
)
_LIKE = re.compile(r"[+-]?[0-9.]+[eEinumkKMGTP]*[-+]?[0-9]*")
NANO = 10**9


class Quantity(Opaque):
    """An amount; `is_integer` where it was written as a whole number."""

    type_name = "kubernetes.Quantity"

    def __init__(self, value: Fraction, is_integer: bool) -> None:
        self.key = value
        self.is_integer = is_integer and MIN_INT <= value <= MAX_INT


@function("quantity(string) -> kubernetes.Quantity")
@lru_cache(maxsize=4096)
def parse_quantity(text: str) -> Quantity:
    """Return the amount that `text` says. EvaluationError where it says none."""
    match = _QUANTITY.fullmatch(text)
    if match is None:
        raise EvaluationError("unable to parse quantity's suffix" if _LIKE.fullmatch(text) else _FORM)
    sign, whole, part, exponent, suffix = match.groups(default="")
    scale = int(exponent or 0) - len(part)
    value = int(f"{whole}{part}" or 0) * Fraction(10) ** scale * SUFFIXES[suffix]
    value = Fraction(ceil(value * NANO), NANO)
    decimal = {"n": -9, "u": -6, "m": -3}.get(suffix, 0) if not suffix.endswith("i") else 0
    integer = (
        not part if suffix.endswith("i") else scale + _thousands(suffix) + decimal >= 0
    ) and value.denominator == 1
    return Quantity(-value if sign == "-" else value, integer)


def _thousands(suffix: str) -> int:
    return 3 * ("kMGTPE".find(suffix) + 1) if suffix else 0


_FORM = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"  # apimachinery's


def _as_integer(quantity: Quantity) -> int:
    if not quantity.is_integer:
        raise EvaluationError("cannot convert value to integer")
    return int(quantity.key)


def _added(sign: int) -> Callable[[Quantity, Quantity | int], Quantity]:
    def added(one: Quantity, two: Quantity | int) -> Quantity:
        other = two if isinstance(two, Quantity) else Quantity(Fraction(two), True)
        return Quantity(one.key + sign * other.key, one.is_integer and other.is_integer)

    return added


_OF = "kubernetes.Quantity"
declare(is_valid(parse_quantity), "isQuantity(string) -> bool")
declare(lambda one: (one.key > 0) - (one.key < 0), f"sign({_OF}) -> int")
declare(lambda one: one.is_integer, f"({_OF}).isInteger() -> bool")
declare(_as_integer, f"({_OF}).asInteger() -> int")
declare(lambda one: float(one.key), f"({_OF}).asApproximateFloat() -> double")
declare(_added(1), f"({_OF}).add({_OF}) -> {_OF}", f"({_OF}).add(int) -> {_OF}")
declare(_added(-1), f"({_OF}).sub({_OF}) -> {_OF}", f"({_OF}).sub(int) -> {_OF}")
declare_order(_OF)
