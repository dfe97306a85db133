"""The frame of an evaluation: the meter of its cost, the declared variables in order, then what macros bind."""

from collections.abc import Callable, Iterable
from typing import Any

from webhook.cel.errors import BudgetError, EvaluationError, no_overload

Frame = list[Any]
Code = Callable[[Frame], Any]


def charge(frame: Frame, cost: int) -> None:
    """Take `cost` from the budget. BudgetError where it is used up."""
    meter = frame[0]
    meter[0] -= cost
    if meter[0] < 0:
        raise BudgetError


def decide(frame: Frame, terms: Iterable[Code], absorbing: bool) -> bool:
    """Return `absorbing` if any term is that, else the opposite; an error counts only where no term decides."""
    error: EvaluationError | None = None
    for term in terms:
        try:
            value = term(frame)
        except EvaluationError as caught:
            error = error or caught
            continue
        if value is absorbing:
            return bool(absorbing)
        if value is not (not absorbing):
            error = error or no_overload()
    if error is not None:
        raise error
    return not absorbing
