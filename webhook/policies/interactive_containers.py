"""Containers wait for nobody to type.

Why: a container with `stdin` or `tty` is there to be attached to; a service reads neither.

Judged: containers and init containers of pods and of everything that makes pods. Ephemeral containers, which
`kubectl debug` adds, are judged with `ephemeral`.

Allowed: neither field, or `false`.
Denied:  `stdin: true`, `tty: true`.
Fix: remove the field.
"""

from pydantic import Field

from webhook.engine import Fields, Params, Policy
from webhook.engine.forbids import forbids


class InteractiveContainers(Params):
    """Which containers are judged."""

    ephemeral: bool = Field(False, description="whether ephemeral containers are judged too")


validate = forbids(
    lambda request, params: request.containers(ephemeral=params.ephemeral),
    ("stdin", "tty"),
    Fields.boolean,
    unless=lambda found, params: not found,
    rule="containers must not be interactive",
    fix="remove it",
    mended=None,
)

POLICY = Policy(
    "interactive-containers",
    InteractiveContainers,
    validate=validate,
    kinds="pods",
    category="workloads",
    severity="low",
)
