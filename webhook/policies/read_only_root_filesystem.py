"""Containers do not write to their root filesystem.

Why: an attacker cannot modify a read-only filesystem, and the container cannot fill the node's
disk. Data belongs in volumes.

Judged: all containers, without those of Windows pods, where the API forbids the field.

Allowed: `securityContext: {readOnlyRootFilesystem: true}`.
Denied:  `readOnlyRootFilesystem: false`, or not set.
Fix: set it to true, and mount an emptyDir where the program writes.
"""

from pydantic import Field

from webhook.engine import Fix, Params, Policy, Request, Violations
from webhook.policies._security_contexts import is_windows, unless

PATH = "securityContext.readOnlyRootFilesystem"
FIX = "set it to true, and mount an emptyDir where the program writes"


class ReadOnlyRootFilesystem(Params):
    """Which containers are judged."""

    ephemeral: bool = Field(
        False,
        description="whether ephemeral containers are judged, too: kubectl debug cannot set it",
    )


def validate(request: Request, params: ReadOnlyRootFilesystem) -> Violations:
    """Yield one violation for each container that does not set the field to true."""
    for container in request.containers(ephemeral=params.ephemeral):
        is_read_only = container.boolean(PATH)
        if not is_read_only:
            words = "unset" if is_read_only is None else None
            yield container.violation(
                PATH, is_read_only, "must be true", FIX, found=words, fix_value=True
            )


POLICY = Policy(
    "read-only-root-filesystem",
    ReadOnlyRootFilesystem,
    validate=unless(is_windows, validate),
    category="pod-security",
    fix=Fix(False, "a program that writes outside its volumes fails"),
)
