"""Conflict back-off: another writer, or admission, keeps changing an applied field."""

import time
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from controller.runtime.types import ReconcileRequest, RetryableError
from kube.resource import Resource

MAX_REPAIRS = 5  # this many repairs of one field …
REPAIRS_WINDOW = 600.0  # … within this many seconds are a contest
REPAIR_INTERVAL = 60.0  # seconds between two repairs during a contest
# Seconds without a repair that end a contest: twice the mean pause between the last repairs, within
# these limits.
CONTEST_END = 120.0
LONGEST_CONTEST_END = 600.0


class WrittenObject(NamedTuple):
    """The request that an object is written for, and the object's resource and key."""

    request: ReconcileRequest
    resource: Resource
    key: str


class ContestedError(RetryableError):
    """Another writer keeps changing applied fields."""


@dataclass(slots=True)
class _Written:
    """What this process wrote to one object, and its repairs."""

    sent: str = ""
    overridden: tuple[str, str] | None = None
    repairs: dict[str, deque[float]] = field(default_factory=dict)
    repaired_at: float = 0.0
    message: str = ""
    end: float = CONTEST_END


class Conflicts:
    """Recent repairs of each object, and answers that differ from the request.

    `sent` and `stored` are digests.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._written: defaultdict[ReconcileRequest, dict[WrittenObject, _Written]] = defaultdict(
            dict
        )

    def check(self, place: WrittenObject, sent: str, *, repair: bool) -> None:
        """Raise `ContestedError` while an object is contested, except for the next repair."""
        written = self._written_to(place)
        if written is None or not written.repairs:
            return
        since = self._clock() - written.repaired_at
        if written.sent != sent or since >= (written.end if written.message else REPAIRS_WINDOW):
            written.repairs, written.message = {}, ""
        elif written.message and not (repair and since >= REPAIR_INTERVAL):
            until = (REPAIR_INTERVAL if since < REPAIR_INTERVAL else written.end) - since
            raise ContestedError(written.message, retry_after=max(until, 1.0))

    def record_repair(self, place: WrittenObject, sent: str, field: str, message: str) -> None:
        """Record a repair of a field; `message` is the text in case of a contest."""
        written = self._written[place.request].setdefault(place, _Written())
        written.sent, written.repaired_at = sent, self._clock()
        times = written.repairs.setdefault(field, deque(maxlen=MAX_REPAIRS))
        times.append(written.repaired_at)
        lasted = times[-1] - times[0]
        if written.message or (len(times) == MAX_REPAIRS and lasted <= REPAIRS_WINDOW):
            written.message = message
            pause = 2 * lasted / max(1, len(times) - 1)
            written.end = min(max(pause, CONTEST_END), max(LONGEST_CONTEST_END, CONTEST_END))
        self.check(place, sent, repair=False)

    def record_answer(self, place: WrittenObject, sent: str, stored: str) -> None:
        """Remember what was sent, and the stored state, if it differs.

        `stored` is empty if it does not.
        """
        written = self._written[place.request].setdefault(place, _Written())
        if written.sent != sent:
            written.repairs, written.message = {}, ""
        written.sent, written.overridden = sent, (sent, stored) if stored else None

    def was_sent(self, place: WrittenObject, sent: str) -> bool:
        """Return whether this is what this process sent last; a write of it is a repair."""
        written = self._written_to(place)
        return written is not None and written.sent == sent

    def is_overridden(self, place: WrittenObject, sent: str, stored: str) -> bool:
        """Return whether the server stored exactly this state for the same request.

        Then another apply would change nothing.
        """
        written = self._written_to(place)
        return written is not None and written.overridden == (sent, stored)

    def forget(self, request: ReconcileRequest) -> None:
        """Remove the objects of a deleted owner."""
        self._written.pop(request, None)

    def _written_to(self, place: WrittenObject) -> _Written | None:
        return (self._written.get(place.request) or {}).get(place)
