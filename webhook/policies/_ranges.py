"""Ranges of whole numbers, as parameters: ports, user ids, group ids."""

from collections.abc import Iterable

from pydantic import Field, model_validator

from webhook.engine.policy import Params


class Range(Params):
    """Whole numbers from `minimum` to `maximum`, both included."""

    minimum: int = Field(ge=0, description="lowest number")
    maximum: int = Field(ge=0, description="highest number")

    @model_validator(mode="after")
    def _in_order(self) -> "Range":
        if self.minimum > self.maximum:
            raise ValueError(f"minimum {self.minimum} is above maximum {self.maximum}")
        return self

    def __contains__(self, number: int) -> bool:
        return self.minimum <= number <= self.maximum

    def __str__(self) -> str:
        return (
            str(self.minimum) if self.minimum == self.maximum else f"{self.minimum}-{self.maximum}"
        )


def any_holds(ranges: Iterable[Range], number: int) -> bool:
    """Return whether any of the ranges holds `number`."""
    return any(number in each for each in ranges)


def format_ranges(ranges: Iterable[Range]) -> str:
    """Return the ranges as a message shows them."""
    return ", ".join(map(str, ranges)) or "none"
