"""The pure centre: requests in, verdicts out. No I/O, no clock, no logging."""

from webhook.engine.bound import BoundPolicy
from webhook.engine.engine import Engine
from webhook.engine.exceptions import NOW
from webhook.engine.fields import Fields, WrongTypeError
from webhook.engine.planners import SERVED, Made, Maker, Planner, Planners, RefusedError
from webhook.engine.policy import Params, Patch, Policy, Violation
from webhook.engine.request import NAMESPACE_LABELS, About, NotLookedUpError, Request
from webhook.engine.verdict import MOST, Outcome, Verdict

__all__ = [
    "MOST",
    "NAMESPACE_LABELS",
    "NOW",
    "SERVED",
    "About",
    "BoundPolicy",
    "Engine",
    "Fields",
    "Made",
    "Maker",
    "NotLookedUpError",
    "Outcome",
    "Params",
    "Patch",
    "Planner",
    "Planners",
    "Policy",
    "RefusedError",
    "Request",
    "Verdict",
    "Violation",
    "WrongTypeError",
]
