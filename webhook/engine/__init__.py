"""The pure centre: requests in, verdicts out. No I/O, no clock, no logging."""

from webhook.engine.engine import BoundPolicy, Engine
from webhook.engine.fields import Fields, WrongTypeError
from webhook.engine.match import NAMESPACE_LABELS
from webhook.engine.policy import Params, Patch, Policy, Violation
from webhook.engine.request import About, NotLookedUpError, Request
from webhook.engine.verdict import Outcome, Verdict

__all__ = [
    "NAMESPACE_LABELS",
    "About",
    "BoundPolicy",
    "Engine",
    "Fields",
    "NotLookedUpError",
    "Outcome",
    "Params",
    "Patch",
    "Policy",
    "Request",
    "Verdict",
    "Violation",
    "WrongTypeError",
]
