"""No container runs privileged.

Why: a privileged container has every capability, sees every device of the node and is held by no seccomp, AppArmor or
SELinux profile: who breaks out of its process owns the node.

Judged: containers, init containers and ephemeral containers, and a WebApp's security context.

Allowed: no `privileged`, or `privileged: false`.
Denied:  `securityContext: {privileged: true}`.
Fix: remove it; add the one capability that is needed, or ask for an exception.
See: https://kubernetes.io/docs/concepts/security/pod-security-standards/#baseline
"""

from collections.abc import Iterator

from webhook.engine import Params, Policy, Request, Violation

PATH = "securityContext.privileged"


def validate(request: Request, params: Params) -> Iterator[Violation]:
    """Yield a violation for each privileged container."""
    for container in request.containers():
        if container.boolean(PATH):
            yield Violation(container.path(PATH), "true", "containers must not run privileged", "remove it")


POLICY = Policy("privileged-containers", validate=validate, category="pod-security", severity="critical")
