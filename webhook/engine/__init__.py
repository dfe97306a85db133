"""The engine: judges requests by policies, as pure functions without I/O, clock or logging."""

from webhook.engine.bound import BoundPolicy
from webhook.engine.containers import Container
from webhook.engine.engine import Engine, Requirements
from webhook.engine.exemptions import NOW
from webhook.engine.fields import Fields, WrongTypeError
from webhook.engine.planners import (
    SERVED,
    ControllerUser,
    PlannedChildren,
    PlannedObject,
    Planner,
    Planners,
)
from webhook.engine.policy import Fix, Params, Policy
from webhook.engine.request import (
    LACKED,
    NAMESPACE,
    NAMESPACE_LABELS,
    PARENT,
    SCHEMAS,
    Attributes,
    NotLookedUpError,
    Request,
)
from webhook.engine.verdict import MAX_VIOLATIONS, Outcome, Verdict, lacked_look_ups
from webhook.engine.violation import ChildField, Patch, Patches, Violation, Violations

__all__ = [
    "LACKED",
    "MAX_VIOLATIONS",
    "NAMESPACE",
    "NAMESPACE_LABELS",
    "NOW",
    "PARENT",
    "SCHEMAS",
    "SERVED",
    "Attributes",
    "BoundPolicy",
    "ChildField",
    "Container",
    "ControllerUser",
    "Engine",
    "Fields",
    "Fix",
    "NotLookedUpError",
    "Outcome",
    "Params",
    "Patch",
    "Patches",
    "PlannedChildren",
    "PlannedObject",
    "Planner",
    "Planners",
    "Policy",
    "Request",
    "Requirements",
    "Verdict",
    "Violation",
    "Violations",
    "WrongTypeError",
    "lacked_look_ups",
]
