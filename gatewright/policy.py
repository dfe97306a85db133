"""The public API for policies: `from gatewright.policy import Policy, Violation`."""

from webhook.engine import Fields, Params, Patch, Policy, Request, Violation
from webhook.engine.kinds import Kind
from webhook.engine.violation import shown

__all__ = ["Fields", "Kind", "Params", "Patch", "Policy", "Request", "Violation", "shown"]
