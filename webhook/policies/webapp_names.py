"""A WebApp's name is a valid Service name.

Why: the controller creates a Service with the WebApp's name, and a Service's name must be a DNS label. Without this
policy, a WebApp with another name would be admitted and never work. Always in force, as part of the kind.

Allowed: `shop`, `shop-2`.
Denied:  `2-shop`, `shop.eu`, a name of more than 63 characters.
Fix: choose a name of at most 63 characters: lower-case letters, digits and `-`, starting with a letter.
See: RFC 1035, section 2.3.1.
"""

import re

from webhook.engine import Params, Policy, Request, Violation, Violations
from webhook.engine.violation import shown

DNS_LABEL = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")


def validate(request: Request, params: Params) -> Violations:
    """Yield a violation where the Service could not be made."""
    name = request.string("metadata.name")
    if name and not DNS_LABEL.fullmatch(name):
        yield Violation(
            "metadata.name",
            found=f"{shown(name)} has {len(name)} characters" if len(name) > 63 else shown(name),
            rule="the Service of this name must have a DNS label as its name, which has a limit of 63 characters",
            fix="use lower-case letters, digits and '-', beginning with a letter",
        )


POLICY = Policy("webapp-names", validate=validate, kinds=("WebApp",), category="webapp", always=True)
