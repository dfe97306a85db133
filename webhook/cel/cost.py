"""The cost of an evaluation: a budget of units, charged for everything that takes time."""

from collections.abc import Callable
from enum import Enum
from typing import Final

from webhook.cel.errors import BudgetError

BUDGET = 100_000  # units for all expressions that share a meter: at most 50 ms on an idle machine

# A unit is at most half a microsecond: one node of an expression, one item that is walked, compared
# or created, or 2 ** shift characters, with one of these shifts.
COPIED = 6  # 64 characters: copied, searched for one character, encoded
COMPARED = 8  # 256 characters: compared with as many others
READ = 3  # 8 characters: parsed


class Meter:
    """The rest of a budget."""

    __slots__ = ("left",)

    def __init__(self, budget: int = BUDGET) -> None:
        self.left = budget

    def charge(self, units: int) -> None:
        """Take units from the budget. Raises BudgetError if it is used up."""
        self.left -= units
        if self.left < 0:
            raise BudgetError


class Walked(Enum):
    """Marks a function that takes the meter as first argument, and charges while it runs."""

    WALKED = "walked"


WALKED: Final = Walked.WALKED
# Cost of a call besides the unit of its node: a number; a function of the arguments, which runs in
# constant time; or `WALKED`.
Cost = int | Callable[..., int] | Walked
NO_MORE = 0  # the cost of a call that takes constant time


def parsing(text: object, *_: object) -> int:
    """Cost of parsing a text such as an address."""
    return 30 + (len(text) >> READ) if isinstance(text, str) else NO_MORE


def of_size(shift: int) -> Callable[..., int]:
    """Return the cost function for the size of the first argument, `2 ** shift` items per unit."""
    return lambda value, *_: len(value) >> shift


copying, reading = of_size(COPIED), of_size(READ)


def comparing(one: object, two: object) -> int:
    """Cost of comparing two values of an ordered type."""
    if isinstance(one, str | bytes) and isinstance(two, str | bytes):
        return min(len(one), len(two)) >> COMPARED
    return NO_MORE


def searching(text: str, part: str, *_: object) -> int:
    """Cost of searching a text forwards: linear for a part of 100 characters or more."""
    return (len(text) >> COPIED) + (len(text) * min(len(part), 100) >> 9)
