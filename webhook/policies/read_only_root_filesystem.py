"""Containers do not write to their root filesystem.

Why: an attacker cannot modify a read-only filesystem, and the container cannot fill the node's disk. Data belongs in
volumes.

Judged: containers and init containers, and a WebApp's security context; Windows pods, where the API forbids the field,
are skipped. Ephemeral containers, for which `kubectl debug` cannot set it, are judged only with `ephemeral_containers`.

Allowed: `securityContext: {readOnlyRootFilesystem: true}`.
Denied:  `readOnlyRootFilesystem: false`, or not set.
Fix: set it to true, and mount an emptyDir where the program writes.
"""

from pydantic import Field

from webhook.engine import Fields, Params, Policy
from webhook.policies._forbids import forbids
from webhook.policies._security_contexts import is_windows


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
