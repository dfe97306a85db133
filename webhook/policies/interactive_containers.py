"""Containers do not request stdin or a TTY.

Why: `stdin` and `tty` are for interactive sessions; a service needs neither.

Judged: containers and init containers of pods and of workloads with a pod template. Ephemeral containers, which
`kubectl debug` adds, are judged with `ephemeral`.

Allowed: neither field, or `false`.
Denied:  `stdin: true`, `tty: true`.
Fix: remove the field.
"""

from pydantic import Field

from webhook.engine import Fields, Params, Policy
from webhook.policies._forbids import forbids


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
    "interactive-containers", InteractiveContainers, validate=validate, category="workloads", severity="low"
)
