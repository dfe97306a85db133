"""Containers open only approved ports on their node.

Why: a host port bypasses network policies, conflicts with other pods on the node, and limits where
the pod can be scheduled.

Judged: the ports of all containers. In a Pod with `hostNetwork`, an unset `hostPort` counts as the
API server's default: the `containerPort`. A pod template has no such default; its pods are judged
when they are created.

Allowed: no `hostPort`, or 0; those within `allowed`.
Denied:  `ports: [{containerPort: 8080, hostPort: 80}]`; in a Pod with `hostNetwork`, also
`ports: [{containerPort: 8080}]`.
Fix: remove `hostPort`; expose the port by a Service.
See: https://kubernetes.io/docs/concepts/security/pod-security-standards/#baseline
"""

from pydantic import Field

from webhook.engine import Container, Params, Policy, Request, Violations
from webhook.policies._ranges import Range, any_holds, format_ranges
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
        rule = f"host ports must be within {format_ranges(params.allowed)}"
    defaulted = _with_default(request)
    for container in having(request.containers(), "ports"):
        for port in container.each("ports"):
            host_port = port.integer("hostPort")
            if not host_port and container in defaulted:
                host_port = port.integer("containerPort")
            if host_port and not any_holds(params.allowed, host_port):
                raw = [host_port, port.value.get("hostIP"), port.value.get("protocol")]
                fix = "remove it, and expose the port by a Service"
                yield port.violation("hostPort", raw, rule, fix, found=str(host_port))


def _with_default(request: Request) -> tuple[Container, ...]:
    """Return the containers for which the API server sets an unset host port."""
    pod = request.pod()
    if request.kind != "Pod" or pod is None or not pod.boolean("hostNetwork"):
        return ()
    return request.containers(ephemeral=False)


POLICY = Policy("host-ports", HostPorts, validate=validate, category="pod-security")
