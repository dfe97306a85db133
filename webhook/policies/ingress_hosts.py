"""Every Ingress rule names its host.

Why: an Ingress without a host, or with a wildcard, receives requests for hosts of other teams.

Judged: the rules of Ingresses. A default backend receives every request that no rule matches, for
any host; it counts as an empty host.

Allowed: `host: shop.example.com`.
Denied:  a rule without `host`; a `defaultBackend`; `host: "*.example.com"`; with `domains`, a host
of another one.
Fix: set `host`.
"""

from pydantic import Field

from webhook.engine import Params, Policy, Request, Violation, Violations
from webhook.engine.globs import Globs

MISSING = "missing, which stands for every host"
UNNAMED = "an Ingress must name its hosts"


class IngressHosts(Params):
    """Which hosts an Ingress may answer for."""

    empty: bool = Field(
        False, description="whether a rule may leave out its host, and a default backend may be"
    )
    wildcards: bool = Field(False, description="whether a host may begin with a wildcard")
    domains: Globs = Field(
        Globs(), description="globs, one of which must match a host; none: any host"
    )


def validate(request: Request, params: IngressHosts) -> Violations:
    """Yield a violation for each rule whose host is empty, a wildcard, or of another domain."""
    rules = list(request.each("spec.rules"))
    if not rules and not params.empty:
        yield Violation("spec.rules", MISSING, UNNAMED, "add rules")
    elif request.is_set("spec.defaultBackend") and not params.empty:
        found, fix = "set, which stands for every host", "replace it by a rule with a host"
        yield Violation("spec.defaultBackend", found, UNNAMED, fix)
    for rule in rules:
        host = rule.string("host") or ""
        if not host and not params.empty:
            yield rule.violation(
                "host", None, "a rule must name its host", "name it", found=MISSING
            )
        elif "*" in host and not params.wildcards:
            yield rule.violation("host", host, "wildcards are not allowed", "name the host")
        elif host and params.domains and not params.domains.match(host):
            yield rule.violation(
                "host", host, f"must be of {', '.join(params.domains)}", "name a host of these"
            )


POLICY = Policy(
    "ingress-hosts", IngressHosts, validate=validate, kinds=("Ingress",), category="network"
)
