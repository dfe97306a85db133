"""No two Ingresses have the same host.

Why: if two Ingresses have the same host, the ingress controller decides which one receives the
requests.

Judged: the hosts of an Ingress against those of all other Ingresses in the cluster, as the webhook
knows them at that moment. Two Ingresses created at the same time may both be admitted.

Allowed: a host that no other Ingress has; with `sharing: namespace`, one that only Ingresses of the
         same namespace have.
Denied:  a host that another Ingress has, or that a wildcard of either covers: `*.example.com` and
`a.example.com`.
Fix: choose another host, or add the paths to the Ingress that has it.
"""

from typing import Literal

from pydantic import Field

from webhook.engine import Params, Policy, Request, Violations
from webhook.engine.violation import shown
from webhook.policies._patterns import wildcard

INGRESSES = "ingresses"


class UniqueIngressHosts(Params):
    """Which Ingresses may share a host."""

    sharing: Literal["nobody", "namespace"] = Field(
        "nobody", description="whether Ingresses of one namespace may share a host"
    )


def validate(request: Request, params: UniqueIngressHosts) -> Violations:
    """Yield a violation for each host that another Ingress has, or that a wildcard covers."""
    # `taken`: hosts, each with the name of another Ingress.
    here, taken = (request.attributes.namespace, dict[str, str]())
    for ingress in request.lookup(INGRESSES):
        is_same = (ingress["namespace"], ingress["name"]) == (here, request.name)
        if not is_same and not (params.sharing == "namespace" and ingress["namespace"] == here):
            taken |= dict.fromkeys(ingress["hosts"], f"{ingress['namespace']}/{ingress['name']}")
    covered = {wildcard(host): host for host in taken}
    for rule in request.each("spec.rules"):
        host = rule.string("host") or ""
        other = next(
            (each for each in (host, wildcard(host), covered.get(host, "")) if each in taken), None
        )
        if host and other is not None:
            how = "is also" if other == host else f"overlaps {shown(other)}"
            found = f"{shown(host)} {how} of Ingress {taken[other]}"
            fix = "choose another host, or add the paths to the Ingress that has it"
            yield rule.violation(
                "host", found, "a host must belong to one Ingress", fix, found=found
            )


POLICY = Policy(
    "unique-ingress-hosts",
    UniqueIngressHosts,
    validate=validate,
    kinds=("Ingress",),
    category="network",
    needs=(INGRESSES,),
)
