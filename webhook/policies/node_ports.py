"""Services ask only for node ports that are theirs to ask for.

Why: a node port belongs to the whole cluster; who takes one by number may take the one that somebody else was
promised.

Judged: the ports and the health check of Services that say which node port they want. One that Kubernetes picks
may fall anywhere, and an update that keeps it is let in with a warning.

Allowed: no `nodePort`, or one of the ranges.
Denied:  `nodePort: 31000` with `ranges: [{minimum: 30000, maximum: 30999}]`.
Fix: leave it out, or take one of the ranges.
"""

from collections.abc import Iterator

from pydantic import Field

from webhook.engine import Fields, Params, Policy, Request, Violation
from webhook.engine.ranges import Range, any_holds, told


class NodePorts(Params):
    """Which node ports may be asked for."""

    ranges: list[Range] = Field([], description="node ports that a Service may ask for; none: it must not ask")


def validate(request: Request, params: NodePorts) -> Iterator[Violation]:
    """Yield a violation for each port outside of the ranges."""
    for port in request.each("spec.ports"):
        yield from _judge(port, "nodePort", params)
    yield from _judge(request, "spec.healthCheckNodePort", params)


def _judge(fields: Fields, path: str, params: NodePorts) -> Iterator[Violation]:
    port = fields.integer(path)
    if port and not any_holds(params.ranges, port):
        rule = f"allowed node ports: {told(params.ranges)}"
        yield Violation(
            fields.path(path), port, rule, "leave it out, or take one of these" if params.ranges else "leave it out"
        )


POLICY = Policy("node-ports", NodePorts, validate=validate, kinds=("Service",), category="network")
