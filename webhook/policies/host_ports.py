"""Containers open only approved ports on their node.

Why: a host port bypasses network policies, conflicts with other pods on the node, and limits where the pod can be
scheduled. For a pod with `hostNetwork`, the API server sets a host port for every container port.

Allowed: no `hostPort`, or 0; those within `allowed`.
Denied:  `ports: [{containerPort: 8080, hostPort: 80}]`.
Fix: remove `hostPort`; expose the port by a Service.
See: https://kubernetes.io/docs/concepts/security/pod-security-standards/#baseline
"""

from pydantic import Field

from webhook.engine import Fields, Params, Policy
from webhook.policies._forbids import forbids
from webhook.policies._ranges import Range, any_holds, listed


class HostPorts(Params):
    """Which ports of the node containers may open."""

    allowed: list[Range] = Field(
        [], description="ranges of ports that may be opened, such as {minimum: 8000, maximum: 8999}"
    )


def _rule(params: HostPorts) -> str:
    ranges = listed(params.allowed)
    return f"host ports must be within {ranges}" if params.allowed else "containers must not open host ports"


validate = forbids(
    lambda request, params: (port for container in request.containers() for port in container.each("ports")),
    "hostPort",
    Fields.integer,
    unless=lambda found, params: not found or any_holds(params.allowed, found),
    rule=_rule,
    fix="remove it, and expose the port by a Service",
    compared=lambda port: [port.value.get(field) for field in ("hostPort", "hostIP", "protocol")],
)

POLICY = Policy("host-ports", HostPorts, validate=validate, category="pod-security")
