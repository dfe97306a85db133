"""Every host of an Ingress is served over TLS.

Why: without TLS, anyone on the network path can read credentials and change responses.

Judged: Ingresses: each host of a rule must be listed in `spec.tls`. A wildcard there covers one
label, as in certificates, and an entry without hosts covers all. A default backend serves every
host. The ingress controller decides whether plain HTTP is served too; `https` requires the
annotation that disables it in several controllers.

Allowed: `tls: [{hosts: [shop.example.com], secretName: shop-tls}]` with that host in the rules.
Denied:  no `tls`, or one that leaves out a host, or a default backend beside hosts.
Fix: add the host to `spec.tls`.
"""

from pydantic import Field

from webhook.engine import Params, Policy, Request, Violation, Violations
from webhook.policies._patterns import wildcard

DEFAULT = "spec.defaultBackend"
ANNOTATION = "kubernetes.io/ingress.allow-http"


class IngressTLS(Params):
    """What an Ingress must have."""

    tls: bool = Field(True, description="whether each host must be covered by spec.tls")
    https: bool = Field(False, description=f"whether the annotation {ANNOTATION} must be false")


def validate(request: Request, params: IngressTLS) -> Violations:
    """Yield a violation for each host without TLS, and for plain HTTP beside it."""
    if params.tls:
        yield from _uncovered_hosts(request)
    if params.https and (value := request.texts("metadata.annotations").get(ANNOTATION)) != "false":
        path, found = f"metadata.annotations[{ANNOTATION}]", "missing" if value is None else None
        yield request.violation(
            path, value, "plain HTTP must not be served", 'set it to "false"', found=found
        )


def _uncovered_hosts(request: Request) -> Violations:
    entries = [entry.strings("hosts") for entry in request.each("spec.tls")]
    rules = [(rule, rule.string("host") or "") for rule in request.each("spec.rules")]
    has_default = request.is_set(DEFAULT)
    if not entries:
        fix = "add its hosts and the Secret of their certificate"
        served = frozenset(host for _, host in rules) | ({"*"} if has_default else set())
        yield Violation("spec.tls", "missing", "an Ingress must use TLS", fix, served)
    elif all(entries):  # an entry without hosts covers every host
        if has_default:
            fix = "replace it by a rule with a host, or add an entry without hosts to spec.tls"
            yield Violation(
                DEFAULT, "serves every host", "each host must be covered by spec.tls", fix
            )
        covered = {host for hosts in entries for host in hosts}
        for rule, host in rules:
            if host not in covered and wildcard(host) not in covered:
                yield rule.violation(
                    "host", host, "the host must be covered by spec.tls", "add it there"
                )


POLICY = Policy(
    "ingress-tls",
    IngressTLS,
    validate=validate,
    kinds=("Ingress",),
    category="network",
    severity="high",
)
