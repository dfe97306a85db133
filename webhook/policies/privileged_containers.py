"""No container runs privileged.

Why: a privileged container has every capability, access to every device of the node, and no seccomp, AppArmor or
SELinux confinement: an attacker in it controls the node.

Allowed: no `privileged`, or `privileged: false`.
Denied:  `securityContext: {privileged: true}`.
Fix: remove it; add only the capability that is needed, or ask for an exception.
See: https://kubernetes.io/docs/concepts/security/pod-security-standards/#baseline
"""

from webhook.engine import Fields, Policy
from webhook.policies._forbids import containers, forbids

validate = forbids(
    containers,
    "securityContext.privileged",
    Fields.boolean,
    unless=lambda found, params: not found,
    rule="containers must not run privileged",
    fix="remove it",
    mended=None,
)

POLICY = Policy("privileged-containers", validate=validate, category="pod-security", severity="critical")
