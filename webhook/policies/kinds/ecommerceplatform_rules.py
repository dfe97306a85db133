"""An EcommercePlatform's children can be created: name, database, containers, host are valid.

Why: without this policy, a platform with invalid children would be admitted, and never be ready. An
unset field is no violation: it has a default, or the condition Ready reports that it is missing. A
database of type postgresql is judged as the PostgreSQL object that the controller creates. Always
in force, as part of the kind.

Allowed: `database: {type: postgresql, version: "14", storage: 1Ti}`, `host: shop.example.com`.
Denied:  what `appstack-rules` denies of the components, all of which a platform has;
         `host: https://shop.example.com`.
Fix: the message names the field, its value and the allowed values.
"""

import re

from webhook.engine import Params, Policy, Request, Violations
from webhook.policies._field_checks import judge_fields
from webhook.policies.kinds import appstack_rules

DNS_NAME = re.compile(
    r"(?!.{254})([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)(\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*"
)


def validate(request: Request, params: Params) -> Violations:
    """Yield one violation for each fault of a component, and of the Ingress."""
    yield from appstack_rules.validate(request, params)
    yield from judge_fields(request.fields("spec"))
    host = request.string("spec.host")
    if host is not None and not DNS_NAME.fullmatch(host):
        fix = "write only the name, in lower case and without a wildcard, such as shop.example.com"
        yield request.violation("spec.host", host, "the host of an Ingress must be a DNS name", fix)


POLICY = Policy(
    "ecommerceplatform-rules",
    validate=validate,
    kinds=("EcommercePlatform",),
    category="ecommerceplatform",
    always=True,
)
