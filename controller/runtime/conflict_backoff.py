"""Conflict back-off: another writer, or admission, keeps changing an applied field."""

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from controller.runtime.types import ReconcileRequest, RetryableError
from kube.resource import Resource

MAX_REPAIRS = 5  # this many repairs …
REPAIRS_WINDOW = 60.0  # … within this many seconds are a contest
REPAIR_INTERVAL = 60.0  # seconds between two repairs during a contest
CONTEST_END = 120.0  # seconds without a repair that end a contest


class WrittenObject(NamedTuple):
    """The request that an object is written for, and the object's resource and key."""

    request: ReconcileRequest
    resource: Resource
    key: str


class ContestedError(RetryableError):
    """Another writer keeps changing applied fields."""


@dataclass(slots=True)
class _Repairs:
    sent: str
    times: deque[float] = field(default_factory=lambda: deque(maxlen=MAX_REPAIRS))
    message: str = ""


class Conflicts:
    """Recent repairs of each object, and answers that differ from the request.

    `sent` and `stored` are digests.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._repairs: dict[WrittenObject, _Repairs] = {}
        self._overridden: dict[WrittenObject, tuple[str, str]] = {}

    def check(self, place: WrittenObject, sent: str, *, repair: bool) -> None:
        """Raise `ContestedError` while an object is contested, except for the next repair."""
        repairs = self._repairs.get(place)
        if repairs is None:
            return
        since = self._clock() - repairs.times[-1]
        if since >= CONTEST_END or repairs.sent != sent:
            del self._repairs[place]
        elif repairs.message and not (repair and since >= REPAIR_INTERVAL):
            until = (REPAIR_INTERVAL if since < REPAIR_INTERVAL else CONTEST_END) - since
            raise ContestedError(repairs.message, retry_after=max(until, 1.0))

    def repaired(self, place: WrittenObject, sent: str, message: str) -> None:
        """Record a repair; `message` is the text in case of a contest."""
        repairs = self._repairs.setdefault(place, _Repairs(sent))
        repairs.times.append(self._clock())
        is_often = (
            len(repairs.times) == MAX_REPAIRS
            and repairs.times[-1] - repairs.times[0] <= REPAIRS_WINDOW
        )
        if repairs.message or is_often:
            repairs.message = message
        self.check(place, sent, repair=False)

    def answered(self, place: WrittenObject, sent: str, stored: str) -> None:
        """Remember the stored state for a request, if it differs.

        `stored` is empty if it does not.
        """
        if stored:
            self._overridden[place] = (sent, stored)
        else:
            self._overridden.pop(place, None)

    def is_overridden(self, place: WrittenObject, sent: str, stored: str) -> bool:
        """Return whether the server stored exactly this state for the same request.

        Then another apply would change nothing.
        """
        return self._overridden.get(place) == (sent, stored)

    def forget(self, request: ReconcileRequest) -> None:
        """Remove the objects of a deleted owner."""
        for known in (self._repairs, self._overridden):
            for place in [place for place in known if place.request == request]:
                del known[place]
