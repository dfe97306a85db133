"""Kubernetes quantities (resource.Quantity) as exact numbers: `500m`, `.5`, `2Gi`, `1e3`."""

import re
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from math import ceil
from typing import NamedTuple, Self

LARGEST = 2**63 - 1  # larger values are reduced to this
LONGEST = 256  # characters
MILLI = 1000  # resource lists keep thousandths; finer values are rounded away from zero
BILLION = 10**9  # the API server keeps no finer values

SUFFIXES = {
    suffix: Fraction(1000) ** power for power, suffix in enumerate(("n", "u", "m", ""), start=-3)
}
SUFFIXES |= {suffix: Fraction(1000) ** power for power, suffix in enumerate("kMGTPE", start=1)}
SUFFIXES |= {
    f"{suffix}i": Fraction(1024) ** power for power, suffix in enumerate("KMGTPE", start=1)
}

# A text without a digit, such as `m`, is 0 to the API server's own parser.
_QUANTITY = re.compile(
    r"(?P<sign>[+-]?)(?=\.?[0-9]|[numkMGTPE])(?P<whole>[0-9]*)(?:\.(?P<part>[0-9]*))?"
    r"(?:[eE](?P<exponent>[+-]?[0-9]+)|(?P<suffix>[KMGTPE]i|[numkMGTPE]?))"
)
_POWERS_OF_TEN = {
    suffix: 3 * power for power, suffix in enumerate(("n", "u", "m", "", *"kMGTPE"), start=-3)
}
# A number with more digits is never an integer to the API server, even if it is a whole number.
_DIGITS_OF_AN_INTEGER = {
    f"{suffix}i": 14 - 3 * power for power, suffix in enumerate("KMGTPE", start=1)
}


class QuantityError(ValueError):
    """The text is not a quantity."""


class Quantity(NamedTuple):
    """An amount of a resource: its value in thousandths, and its original text."""

    millis: int
    text: str

    def __str__(self) -> str:
        """Return the original text."""
        return self.text


@dataclass(frozen=True, slots=True, order=True)
class ExactQuantity:
    """An amount to the billionth; `is_integer` if written as a whole number of 64 bits."""

    value: Fraction
    is_integer: bool = field(compare=False)

    @classmethod
    def of(cls, value: Fraction, is_integer: bool) -> Self:
        """Return the amount; a number that needs more than 64 bits is not an integer."""
        return cls(value, is_integer and -LARGEST - 1 <= value <= LARGEST)


def parse_exact(text: str) -> ExactQuantity | None:
    """Parse a quantity as the API server does; None for any other text."""
    match = _QUANTITY.fullmatch(text) if len(text) <= LONGEST else None
    if match is None:
        return None
    sign, whole, part, exponent, suffix = match.groups(default="")
    # Beyond this limit, the exponent no longer changes the result.
    power = min(max(int(exponent or 0), -2 * LONGEST), 2 * LONGEST) - len(part)
    exact = int(f"{whole}{part}" or 0) * Fraction(10) ** power * SUFFIXES[suffix]
    value = Fraction(ceil(exact * BILLION), BILLION) * (-1 if sign == "-" else 1)
    digits = len(whole.lstrip("0") or "0") + len(part)
    if suffix.endswith("i"):
        is_integer = not part and digits <= _DIGITS_OF_AN_INTEGER[suffix]
    else:
        is_integer = power + _POWERS_OF_TEN[suffix] >= 0 and digits <= 18
    return ExactQuantity.of(value, is_integer and value.denominator == 1)


@lru_cache(maxsize=4096)
def parse_quantity(text: str) -> Quantity:
    """Parse a quantity of a resource list. Raises QuantityError for any other text.

    Rounding and the maximum follow resource lists in the API. Text without a digit is rejected,
    although some API servers accept `m` for 0.
    """
    text = text.strip() if len(text) <= LONGEST else text
    exact = parse_exact(text)
    if exact is None or not any(map(str.isdigit, text)):
        raise QuantityError("must be a number with an optional unit, such as 500m, 1.5 or 2Gi")
    millis = min(ceil(abs(exact.value) * MILLI), LARGEST * MILLI)
    return Quantity(-millis if exact.value < 0 else millis, text)


def format_quantity(millis: int) -> Quantity:
    """Return a number of thousandths as the shortest usual quantity."""
    if millis % MILLI:
        return parse_quantity(f"{millis}m")
    value = millis // MILLI
    units = (f"{unit}i" for unit in "EPTGMK")
    unit = next((unit for unit in units if value and not value % SUFFIXES[unit]), "")
    return parse_quantity(f"{int(value / SUFFIXES[unit])}{unit}")
