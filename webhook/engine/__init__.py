"""The pure centre: requests in, verdicts out. No I/O, no clock, no logging."""

from webhook.engine.bound import BoundPolicy
from webhook.engine.engine import Engine
from webhook.engine.exceptions import NOW
from webhook.engine.fields import Fields, WrongTypeError
from webhook.engine.planners import SERVED, ControllerUser, PlannedObject, Planner, Planners, RefusedError
from webhook.engine.policy import Params, Patch, Policy, Violation
from webhook.engine.request import NAMESPACE_LABELS, Attributes, NotLookedUpError, Request
from webhook.engine.verdict import MAX_VIOLATIONS, Outcome, Verdict

__all__ = [
    "MAX_VIOLATIONS",
    "NAMESPACE_LABELS",
    "NOW",
    "SERVED",
    "Attributes",
    "BoundPolicy",
    "ControllerUser",
    "Engine",
    "Fields",
    "NotLookedUpError",
    "Outcome",
    "Params",
    "Patch",
    "PlannedObject",
    "Planner",
    "Planners",
    "Policy",
    "RefusedError",
    "Request",
    "Verdict",
    "Violation",
    "WrongTypeError",
]
