"""Containers open no ports on their node, but for approved ones.

Why: a port of the node bypasses network policies, takes the number from everybody else on the node, and limits where
the pod can run. A pod with `hostNetwork` opens all of its container ports there: the API server fills them in.

Allowed: no `hostPort`, or 0; those within `allowed`.
Denied:  `ports: [{containerPort: 8080, hostPort: 80}]`.
Fix: remove `hostPort`; expose the port by a Service.
See: https://kubernetes.io/docs/concepts/security/pod-security-standards/#baseline
"""

from collections.abc import Iterator

from pydantic import Field

from webhook.engine import Params, Policy, Request, Violation
from webhook.engine.ranges import Range, any_holds, told


class HostPorts(Params):
    """Which ports of the node containers may open."""

    allowed: list[Range] = Field(
        [], description="ranges of ports that may be opened, such as {minimum: 8000, maximum: 8999}"
    )


def validate(request: Request, params: HostPorts) -> Iterator[Violation]:
    """Yield a violation for each port of the node that may not be opened."""
    rule = (
        f"host ports must be within {told(params.allowed)}" if params.allowed else "containers must not open host ports"
    )
    for container in request.containers():
        for port in container.each("ports"):
            found = port.integer("hostPort")
            if found and not any_holds(params.allowed, found):
                yield Violation(port.path("hostPort"), found, rule, "remove it, and expose the port by a Service")


POLICY = Policy("host-ports", HostPorts, validate=validate, category="pod-security")
