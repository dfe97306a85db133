"""Services use only approved node ports.

Why: a node port is unique in the cluster; a Service may use one that is reserved for another team.

Judged: node ports of Services, that of their health check included. Kubernetes allocates an unset
port from its whole range before the webhook is called, so a Service must name its ports.

Allowed: `nodePort: 30080` with `ranges: [{minimum: 30000, maximum: 30999}]`; a Service without node
ports.
Denied:  `nodePort: 31000`; a NodePort or LoadBalancer without explicit node ports.
Fix: set a port within the ranges; a LoadBalancer needs none with `allocateLoadBalancerNodePorts:
false`, but with `externalTrafficPolicy: Local` a `healthCheckNodePort`.
"""

from pydantic import Field

from webhook.engine import Params, Policy, Request, Violations
from webhook.policies._ranges import Range, any_holds, format_ranges

HEALTH = "spec.healthCheckNodePort"


class NodePorts(Params):
    """Which node ports may be used."""

    ranges: list[Range] = Field(min_length=1, description="node ports that a Service may use")


def validate(request: Request, params: NodePorts) -> Violations:
    """Yield a violation for each port outside of the ranges."""
    type = request.string("spec.type")
    allocates = request.boolean("spec.allocateLoadBalancerNodePorts") is not False
    picks = type == "NodePort" or (type == "LoadBalancer" and allocates)
    rule = f"allowed node ports: {format_ranges(params.ranges)}"
    for port in request.each("spec.ports"):
        number = port.integer("nodePort") or 0
        if (number or picks) and not any_holds(params.ranges, number):
            yield port.violation(
                "nodePort", number, rule, "name one of these", found=None if number else "missing"
            )
    health = request.integer(HEALTH) or 0
    picks = type == "LoadBalancer" and request.string("spec.externalTrafficPolicy") == "Local"
    if (health or picks) and not any_holds(params.ranges, health):
        found = None if health else "missing"
        yield request.violation(HEALTH, health, rule, "name one of these", found=found)


POLICY = Policy("node-ports", NodePorts, validate=validate, kinds=("Service",), category="network")
