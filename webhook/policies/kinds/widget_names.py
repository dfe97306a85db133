"""A Widget's name is a valid label value.

Why: a Widget's Deployment selects its pods by a label with the Widget's name; a label value has at
most 63 characters, fewer than a name. Always in force, as part of the kind.

Allowed: `gears`, `gears.eu`.
Denied:  a name of more than 63 characters.
Fix: choose a shorter name.
"""

from webhook.engine import Params, Policy, Request, Violations
from webhook.policies._field_checks import judge_name


def validate(request: Request, params: Params) -> Violations:
    """Return a violation if the name is too long for a label."""
    return judge_name(
        request, (63, "its pods carry the name as a label, which has a limit of 63 characters")
    )


POLICY = Policy(
    "widget-names", validate=validate, kinds=("Widget",), category="widget", always=True
)
