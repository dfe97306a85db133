"""No container runs privileged.

Why: a privileged container has every capability, access to every device of the node, and no
seccomp, AppArmor or SELinux confinement: an attacker in it controls the node.

Allowed: no `privileged`, or `privileged: false`.
Denied:  `securityContext: {privileged: true}`.
Fix: remove it; add only the capability that is needed, or ask for an exception.
See: https://kubernetes.io/docs/concepts/security/pod-security-standards/#baseline
"""

from webhook.engine import Fix, Params, Policy, Request, Violations
from webhook.policies._records import having

PATH = "securityContext.privileged"


def validate(request: Request, params: Params) -> Violations:
    """Yield one violation for each privileged container."""
    for container in having(request.containers(), "securityContext"):
        if container.boolean(PATH):
            yield container.violation(
                PATH, True, "containers must not run privileged", "remove it", fix_value=None
            )


POLICY = Policy(
    "privileged-containers",
    validate=validate,
    category="pod-security",
    severity="critical",
    fix=Fix(False, "a program that manages the node or its devices stops working"),
)
