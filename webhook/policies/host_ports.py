"""Containers open only approved ports on their node.

Why: a host port bypasses network policies, conflicts with other pods on the node, and limits where
the pod can be scheduled. For a pod with `hostNetwork`, the API server sets a host port for every
container port.

Allowed: no `hostPort`, or 0; those within `allowed`.
Denied:  `ports: [{containerPort: 8080, hostPort: 80}]`.
Fix: remove `hostPort`; expose the port by a Service.
See: https://kubernetes.io/docs/concepts/security/pod-security-standards/#baseline
"""

from pydantic import Field

from webhook.engine import Params, Policy, Request, Violations
from webhook.policies._ranges import Range, any_holds, listed
from webhook.policies._records import having


class HostPorts(Params):
    """Which ports of the node containers may open."""

    allowed: list[Range] = Field(
        [], description="ranges of ports that may be opened, such as {minimum: 8000, maximum: 8999}"
    )


def validate(request: Request, params: HostPorts) -> Violations:
    """Yield one violation for each host port that is not allowed."""
    rule = "containers must not open host ports"
    if params.allowed:
        rule = f"host ports must be within {listed(params.allowed)}"
    for container in having(request.containers(), "ports"):
        for port in having(container.each("ports"), "hostPort"):
            found = port.integer("hostPort")
            if found and not any_holds(params.allowed, found):
                raw = [port.value.get(field) for field in ("hostPort", "hostIP", "protocol")]
                fix = "remove it, and expose the port by a Service"
                yield port.violation("hostPort", raw, rule, fix, found=str(found))


POLICY = Policy("host-ports", HostPorts, validate=validate, category="pod-security")
