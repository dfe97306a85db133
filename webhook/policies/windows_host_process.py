"""No Windows container runs as a HostProcess container.

Why: a HostProcess container is not isolated: it has access to the node's files, network and privileges.

Judged: `securityContext.windowsOptions.hostProcess` of the pod and of each container.

Allowed: not set, or `false`.
Denied:  `windowsOptions: {hostProcess: true}`.
Fix: remove it, or ask for an exception for software that manages the node.
See: https://kubernetes.io/docs/concepts/security/pod-security-standards/#baseline
"""

from webhook.engine import Fields, Policy
from webhook.policies._forbids import forbids
from webhook.policies._security_contexts import contexts

validate = forbids(
    lambda request, params: contexts(request),
    "securityContext.windowsOptions.hostProcess",
    Fields.boolean,
    unless=lambda found, params: not found,
    rule="containers must not be processes of their node",
    fix="remove it",
    mended=None,
)

POLICY = Policy("windows-host-process", validate=validate, category="pod-security", severity="critical")
