"""Containers do not write to their root filesystem.

Why: what cannot be written cannot be changed by who breaks in, and does not fill the node's disk. Data goes to volumes.

Judged: containers and init containers, and a WebApp's security context; Windows pods, which cannot say it, are left
alone, and so are ephemeral containers, for which `kubectl debug` cannot say it, unless asked for.

Allowed: `securityContext: {readOnlyRootFilesystem: true}`.
Denied:  `readOnlyRootFilesystem: false`, or not set.
Fix: set it to true, and mount an emptyDir where the program writes.
"""

from pydantic import Field

from webhook.engine import Fields, Params, Policy
from webhook.engine.forbids import forbids
from webhook.engine.security_contexts import is_windows


class ReadOnlyRootFilesystem(Params):
    """Whose root filesystem must be read-only."""

    ephemeral_containers: bool = Field(False, description="judge ephemeral containers (kubectl debug) too")


validate = forbids(
    lambda request, params: request.containers(ephemeral=params.ephemeral_containers),
    "securityContext.readOnlyRootFilesystem",
    Fields.boolean,
    unless=lambda found, params: found,
    rule="must be true",
    fix="set it to true, and mount an emptyDir where the program writes",
    mended=True,
    exempt=lambda request, params: is_windows(request.pod()),
)

POLICY = Policy("read-only-root-filesystem", ReadOnlyRootFilesystem, validate=validate, category="pod-security")
