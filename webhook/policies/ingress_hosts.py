"""Every Ingress rule names its host.

Why: an Ingress without a host, or with a wildcard, receives requests for hosts of other teams.

Judged: the rules of Ingresses. A default backend receives every request that no rule matches, for any host; it counts
as an empty host.

Allowed: `host: shop.example.com`.
Denied:  a rule without `host`; a `defaultBackend`; `host: "*.example.com"`; with `domains`, a host that none of them
         matches; with `maximum`, more hosts than that.
Fix: set `host`.
"""

from pydantic import Field

from webhook.engine import Params, Policy, Request, Violation, Violations
from webhook.engine.globs import Globs


class IngressHosts(Params):
    """Which hosts an Ingress may answer for."""

    empty: bool = Field(False, description="whether a rule may leave out its host, and a default backend may be")
    wildcards: bool = Field(False, description="whether a host may begin with a wildcard")
    maximum: int | None = Field(None, ge=1, description="highest number of hosts of one Ingress; any, if left out")
    domains: Globs = Field(Globs(), description="globs, one of which must match a host; none: any host")


def validate(request: Request, params: IngressHosts) -> Violations:
    """Yield a violation for each rule whose host is empty, a wildcard, or of another domain."""
    rules = list(request.each("spec.rules"))
    if not rules and not params.empty:
        found = "missing, which stands for every host"
        yield Violation("spec.rules", found, "an Ingress must name its hosts", "add rules")
    if rules and request.is_set("spec.defaultBackend") and not params.empty:
        found = "set, which stands for every host"
        yield Violation(
            "spec.defaultBackend", found, "an Ingress must name its hosts", "replace it by a rule with a host"
        )
    hosts = [rule.string("host") or "" for rule in rules]
    count = len(set(hosts))
    if params.maximum is not None and count > params.maximum:
        limit, excess = f"an Ingress must have at most {params.maximum} hosts", count - params.maximum
        yield Violation("spec.rules", f"{count} hosts", limit, "split it into several Ingresses", excess)
    for rule, host in zip(rules, hosts, strict=True):
        if not host:
            if not params.empty:
                found = "missing, which stands for every host"
                yield rule.violation("host", None, "a rule must name its host", "name it", found=found)
        elif "*" in host and not params.wildcards:
            yield rule.violation("host", host, "wildcards are not allowed", "name the host")
        elif params.domains and not params.domains.match(host):
            yield rule.violation("host", host, f"must be of {', '.join(params.domains)}", "name a host of these")


POLICY = Policy("ingress-hosts", IngressHosts, validate=validate, kinds=("Ingress",), category="network")
