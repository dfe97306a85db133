"""Containers wait for nobody to type.

Why: a container with `stdin` or `tty` is there to be attached to; a service reads neither.

Judged: containers and init containers of pods and of everything that makes pods. Ephemeral containers, which
`kubectl debug` adds, are judged with `ephemeral`.

Allowed: neither field, or `false`.
Denied:  `stdin: true`, `tty: true`.
Fix: remove the field.
"""

from collections.abc import Iterator

from pydantic import Field

from webhook.engine import Params, Policy, Request, Violation


class InteractiveContainers(Params):
    """Which containers are judged."""

    ephemeral: bool = Field(False, description="whether ephemeral containers are judged too")


def validate(request: Request, params: InteractiveContainers) -> Iterator[Violation]:
    """Yield a violation for each container that waits for input."""
    for container in request.containers(ephemeral=params.ephemeral):
        for field in ("stdin", "tty"):
            if container.boolean(field):
                yield Violation(container.path(field), "true", "containers must not be interactive", "remove it")


POLICY = Policy(
    "interactive-containers",
    InteractiveContainers,
    validate=validate,
    kinds="pods",
    category="workloads",
    severity="low",
)
