"""Conditions: what they say now, and when that last changed."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from controller.runtime.moments import rfc3339
from controller.runtime.plan import Object

READY = "Ready"
MESSAGE_LIMIT = 1024


def condition(type: str, holds: bool, reason: str, message: str = "") -> Object:
    """Return a condition that does not know yet when its status changed."""
    return {"type": type, "status": str(holds), "reason": reason, "message": message[:MESSAGE_LIMIT]}


def dated(new: Sequence[Object], old: Sequence[Object], *, generation: int, now: datetime) -> list[Object]:
    """Return the new conditions with the generation they speak of and the time their status last changed."""
    before = {each["type"]: each for each in old}
    return [
        {**each, "observedGeneration": generation, "lastTransitionTime": _changed(each, before.get(each["type"]), now)}
        for each in new
    ]


def _changed(new: Object, old: Object | None, now: datetime) -> Any:
    if old is not None and old["status"] == new["status"] and old.get("lastTransitionTime"):
        return old["lastTransitionTime"]
    return rfc3339(now)


def ready_in(status: Object) -> Object | None:
    """Return the condition Ready of a stored status."""
    return next((each for each in status.get("conditions") or () if each["type"] == READY), None)


def is_ready(status: Object) -> bool:
    """Tell whether a status has the condition Ready with status True."""
    ready = ready_in(status)
    return ready is not None and ready["status"] == "True"
