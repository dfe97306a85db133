"""Conditions: what they say now, and when that last changed."""

from collections.abc import Sequence
from datetime import datetime

from controller.runtime.moments import rfc3339
from controller.runtime.plan import Object

READY = "Ready"
MESSAGE_LIMIT = 1024


def condition(type: str, holds: bool, reason: str, message: str = "") -> Object:
    """Return a condition that does not know yet when its status changed."""
    return {"type": type, "status": str(holds), "reason": reason, "message": message[:MESSAGE_LIMIT]}


def dated(new: Sequence[Object], old: Sequence[Object], *, generation: int, now: datetime) -> list[Object]:
    """Return the new conditions with the generation they speak of and the time their status last changed."""
    said = []
    for each in new:
        before, since = of_type(each["type"], old), None
        if before is not None and before["status"] == each["status"]:
            since = before.get("lastTransitionTime")
        said.append({**each, "observedGeneration": generation, "lastTransitionTime": since or rfc3339(now)})
    return said


def ready_in(status: Object) -> Object | None:
    """Return the condition Ready of a stored status."""
    return of_type(READY, status.get("conditions") or ())


def of_type(type: str, conditions: Sequence[Object]) -> Object | None:
    """Return the condition of a type."""
    for each in conditions:
        if each["type"] == type:
            return each
    return None


def is_ready(status: Object) -> bool:
    """Tell whether a status has the condition Ready with status True."""
    ready = ready_in(status)
    return ready is not None and ready["status"] == "True"
