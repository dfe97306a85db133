"""Containers do not request stdin or a TTY.

Why: `stdin` and `tty` are for interactive sessions; a service needs neither.

Allowed: neither field, or `false`.
Denied:  `stdin: true`, `tty: true`.
Fix: remove the field.
"""

from pydantic import Field

from webhook.engine import Fix, Params, Policy, Request, Violations
from webhook.policies._records import having


class InteractiveContainers(Params):
    """Which containers are judged."""

    ephemeral: bool = Field(
        False, description="whether ephemeral containers (kubectl debug) are judged too"
    )


def validate(request: Request, params: InteractiveContainers) -> Violations:
    """Yield a violation for each container that requests stdin, or a TTY."""
    for field in ("stdin", "tty"):
        for container in having(request.containers(ephemeral=params.ephemeral), field):
            if container.boolean(field):
                yield container.violation(
                    field, True, "containers must not be interactive", "remove it", fix_value=None
                )


POLICY = Policy(
    "interactive-containers",
    InteractiveContainers,
    validate=validate,
    category="workloads",
    severity="low",
    fix=Fix(True, "a program in a cluster reads no terminal"),
)
