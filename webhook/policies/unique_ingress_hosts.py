"""A host belongs to one Ingress.

Why: two Ingresses for one host take each other's requests, and which one wins depends on the controller.

Judged: the hosts of an Ingress against those of all others in the cluster, as they are known at that moment: two that
are made in the same instant may both be let in.

Allowed: a host that no other Ingress names; with `sharing: namespace`, one that only Ingresses of the same namespace
         name.
Denied:  a host that another Ingress names.
Fix: choose another host, or add the paths to the Ingress that has it.
"""

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from webhook.engine import Params, Policy, Request, Violation
from webhook.engine.fields import shown

INGRESSES = "ingresses"


class UniqueIngressHosts(Params):
    """Who may share a host."""

    sharing: Literal["nobody", "namespace"] = Field(
        "nobody", description="whether Ingresses of one namespace may share a host"
    )


def validate(request: Request, params: UniqueIngressHosts) -> Iterator[Violation]:
    """Yield a violation for each host that another Ingress has."""
    here = request.attributes.namespace
    taken: dict[str, str] = {}
    for other in request.lookup(INGRESSES):
        is_mine = (other["namespace"], other["name"]) == (here, request.attributes.name)
        if not is_mine and not (params.sharing == "namespace" and other["namespace"] == here):
            taken |= dict.fromkeys(other["hosts"], f"{other['namespace']}/{other['name']}")
    for rule in request.each("spec.rules"):
        host = rule.string("host")
        if host in taken:
            found = f"{shown(host)} is also of Ingress {taken[host]}"
            fix = "choose another host, or add the paths to the Ingress that has it"
            yield Violation(rule.path("host"), found, "a host must belong to one Ingress", fix)


POLICY = Policy(
    "unique-ingress-hosts",
    UniqueIngressHosts,
    validate=validate,
    kinds=("Ingress",),
    category="network",
    needs=(INGRESSES,),
)
