"""A WebApp's name is a valid Service name.

Why: the controller creates a Service with the WebApp's name, and a Service's name must be a DNS
label. A WebApp with another name would never work. Always in force, as part of the kind.

Allowed: `shop`, `shop-2`.
Denied:  `2-shop`, `shop.eu`, a name of more than 63 characters.
Fix: choose a name of at most 63 characters: lower-case letters, digits and `-`, starting with a
letter.
See: RFC 1035, section 2.3.1.
"""

from webhook.engine import Params, Policy, Request, Violations
from webhook.policies._field_checks import judge_name

RULE = (
    "the Service of this name must have a DNS label as its name, which has a limit of 63 characters"
)


def validate(request: Request, params: Params) -> Violations:
    """Return a violation if no Service can have the name."""
    return judge_name(request, (63, RULE), label=RULE)


POLICY = Policy(
    "webapp-names", validate=validate, kinds=("WebApp",), category="webapp", always=True
)
