"""Containers do not write to their root filesystem.

Why: what cannot be written cannot be changed by who breaks in, and does not fill the node's disk. Data goes to volumes.

Judged: containers and init containers, and a WebApp's security context; Windows pods, which cannot say it, are left
alone, and so are ephemeral containers, for which `kubectl debug` cannot say it, unless asked for.

Allowed: `securityContext: {readOnlyRootFilesystem: true}`.
Denied:  `readOnlyRootFilesystem: false`, or not set.
Fix: set it to true, and mount an emptyDir where the program writes.
"""

from collections.abc import Iterator

from pydantic import Field

from webhook.engine import Params, Policy, Request, Violation
from webhook.engine.security_contexts import is_windows

PATH = "securityContext.readOnlyRootFilesystem"


class ReadOnlyRootFilesystem(Params):
    """Whose root filesystem must be read-only."""

    ephemeral_containers: bool = Field(False, description="judge ephemeral containers (kubectl debug) too")


def validate(request: Request, params: ReadOnlyRootFilesystem) -> Iterator[Violation]:
    """Yield a violation for each container whose root filesystem can be written."""
    if is_windows(request.pod()):
        return
    for container in request.containers(ephemeral=params.ephemeral_containers):
        found = container.boolean(PATH)
        if not found:
            fix = "set it to true, and mount an emptyDir where the program writes"
            yield Violation(container.path(PATH), "unset" if found is None else "false", "must be true", fix)


POLICY = Policy("read-only-root-filesystem", ReadOnlyRootFilesystem, validate=validate, category="pod-security")
