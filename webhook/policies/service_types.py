"""Services are not exposed outside the cluster.

Why: a NodePort opens a port on every node and bypasses Ingresses and their TLS; a LoadBalancer may
get a public address, and costs money.

Allowed: `type: ClusterIP`, or none; a LoadBalancer with one of the annotations in `internal`, such
         as `{service.beta.kubernetes.io/azure-load-balancer-internal: "true"}`.
Denied:  `type: NodePort`, `type: LoadBalancer`.
Fix: use ClusterIP, and an Ingress or a Gateway for external traffic.
"""

from typing import Literal, get_args

from pydantic import Field

from webhook.engine import Params, Policy, Request, Violations
from webhook.policies._patterns import Pattern, compile_pattern

ServiceType = Literal["ClusterIP", "NodePort", "LoadBalancer", "ExternalName"]


class ServiceTypes(Params):
    """Which types of Services are denied."""

    forbidden: list[ServiceType] = Field(
        ["NodePort", "LoadBalancer"], min_length=1, description="types that are denied"
    )
    internal: dict[str, Pattern] = Field(
        {},
        description=(
            "annotations, with patterns of their values, any of which marks a LoadBalancer as "
            "internal"
        ),
    )


def validate(request: Request, params: ServiceTypes) -> Violations:
    """Yield a violation for a forbidden type."""
    type = request.string("spec.type") or "ClusterIP"
    if type not in params.forbidden:
        return
    internal = params.internal if type == "LoadBalancer" else {}
    annotations = request.texts("metadata.annotations")
    marks = {key: annotations[key] for key in internal if key in annotations}
    if any(compile_pattern(internal[key])(value) for key, value in marks.items()):
        return
    allowed = [each for each in get_args(ServiceType) if each not in params.forbidden]
    unless = f" without one of the annotations {', '.join(internal)}" if internal else ""
    rule = f"Services of this type{unless} are not allowed"
    yield request.violation("spec.type", type, rule, f"use {' or '.join(allowed)}", found=type)


POLICY = Policy(
    "service-types", ServiceTypes, validate=validate, kinds=("Service",), category="network"
)
