"""Parse Kubernetes quantities (resource.Quantity) into exact numbers: `500m`, `.5`, `2Gi`, `1e3`."""

import re
from fractions import Fraction
from functools import lru_cache
from math import ceil
from typing import NamedTuple

LARGEST = 2**63 - 1  # larger values are reduced to this
LONGEST = 256  # characters
MILLI = 1000  # resource lists keep thousandths; finer values are rounded away from zero

SUFFIXES = {
    suffix: Fraction(1000) ** power for power, suffix in enumerate(("n", "u", "m", ""), start=-3)
}
SUFFIXES |= {suffix: Fraction(1000) ** power for power, suffix in enumerate("kMGTPE", start=1)}
SUFFIXES |= {
    f"{suffix}i": Fraction(1024) ** power for power, suffix in enumerate("KMGTPE", start=1)
}

_QUANTITY = re.compile(
    r"(?P<sign>[+-]?)(?P<whole>[0-9]*)(?P<point>\.?)(?P<part>[0-9]*)"
    r"(?:[eE](?P<exponent>[+-]?[0-9]+)|(?P<suffix>[KMGTPE]i|[numkMGTPE]?))"
)


class QuantityError(ValueError):
    """The text is not a quantity."""


class Quantity(NamedTuple):
    """An amount of a resource: its value in thousandths, and its original text."""

    millis: int
    text: str

    def __str__(self) -> str:
        """Return the original text."""
        return self.text


@lru_cache(maxsize=4096)
def parse_quantity(text: str) -> Quantity:
    """Parse a quantity. Raises QuantityError for any other text.

    Rounding and the maximum follow resource lists in the API. Text without a digit is rejected,
    although some API servers accept `m` for 0.
    """
    match = (
        _QUANTITY.fullmatch(text.strip()) if len(text) <= LONGEST else None
    )  # blanks count: what is parsed is kept
    if match is None or not (match["whole"] or match["part"]):
        raise QuantityError("must be a number with an optional unit, such as 500m, 1.5 or 2Gi")
    digits = int(f"{match['whole']}{match['part']}")
    exponent = min(
        max(int(match["exponent"] or 0), -2 * LONGEST), 2 * LONGEST
    )  # beyond, digits change nothing
    exact = (
        digits * Fraction(10) ** (exponent - len(match["part"])) * SUFFIXES[match["suffix"] or ""]
    )
    millis = min(ceil(exact * MILLI), LARGEST * MILLI)
    return Quantity(-millis if match["sign"] == "-" else millis, text.strip())


def written(millis: int) -> Quantity:
    """Return a number of thousandths as the shortest usual quantity."""
    if millis % MILLI:
        return parse_quantity(f"{millis}m")
    value = millis // MILLI
    units = (f"{unit}i" for unit in "EPTGMK")
    unit = next((unit for unit in units if value and not value % SUFFIXES[unit]), "")
    return parse_quantity(f"{int(value / SUFFIXES[unit])}{unit}")
