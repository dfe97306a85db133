"""Somebody keeps changing back what we apply: that is noticed, told, and answered once a minute only."""

import time
from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from controller.runtime.claims import FIELD_MANAGER
from controller.runtime.plan import Object
from controller.runtime.result import RetryableError

OFTEN = 5  # so many times …
SOON = 60.0  # … within so many seconds is a contest, and from then on
REST = 60.0  # seconds pass before each time that we put something back
OVER = 120.0  # nothing had to be put back for so long: it is over


class ContestedError(RetryableError):
    """Fields that we apply are changed again and again by somebody else."""


@dataclass(slots=True)
class _Contest:
    times: deque[float] = field(default_factory=lambda: deque(maxlen=OFTEN))
    message: str = ""


class Contests:
    """How often each object had to be put right, as long as that matters."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._contests: dict[Hashable, _Contest] = {}

    def error(self, place: Hashable) -> ContestedError | None:
        """Return what to say of a contested object, and when to look again; None if it is not contested.

        Until it can be put right again; from then on what is right needs nobody, until it is over.
        """
        contest = self._contests.get(place)
        if contest is None:
            return None
        since = self._clock() - contest.times[-1]
        if since >= OVER:
            del self._contests[place]
            return None
        until = (REST if since < REST else OVER) - since
        return ContestedError(contest.message, retry_after=max(until, 1.0)) if contest.message else None

    def may_put_right(self, place: Hashable) -> bool:
        """Tell whether it is time to put an object right."""
        return self.error(place) is None or self._clock() - self._contests[place].times[-1] >= REST

    def is_near(self, place: Hashable) -> bool:
        """Tell whether an object is contested, or will be when it has to be put right once more."""
        contest = self._contests.get(place)
        return contest is not None and (bool(contest.message) or len(contest.times) >= OFTEN - 1)

    def put_right(self, place: Hashable, message: str) -> None:
        """Note that an object was put right; `message` says what was wrong with it, should that happen too often."""
        contest = self._contests.setdefault(place, _Contest())
        contest.times.append(self._clock())
        if contest.message or (len(contest.times) == OFTEN and contest.times[-1] - contest.times[0] <= SOON):
            contest.message = message

    def forget(self, place: Hashable) -> None:
        """Forget an object that is gone."""
        self._contests.pop(place, None)


def last_manager(stored: Object) -> str:
    """Return who else wrote an object last, by its managed fields."""
    others = [
        each
        for each in stored["metadata"].get("managedFields") or ()
        if each["manager"] != FIELD_MANAGER and each.get("subresource") != "status"
    ]
    return max(others, key=lambda each: each.get("time") or "", default={"manager": "somebody"})["manager"]
