"""What a team's own policies import: `from gatewright.policy import Policy, Violation`."""

from webhook.engine import Fields, Params, Patch, Policy, Request, Violation
from webhook.engine.fields import shown
from webhook.engine.kinds import Kind

__all__ = ["Fields", "Kind", "Params", "Patch", "Policy", "Request", "Violation", "shown"]
