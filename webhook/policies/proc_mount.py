"""Containers see /proc with its sensitive parts masked.

Why: the runtime masks parts of /proc that expose or change the node's state. `Unmasked` is intended
for nested containers in a user namespace.

Allowed: no `procMount`, or `Default`.
Denied:  `procMount: Unmasked`.
Fix: remove it.
See: https://kubernetes.io/docs/concepts/security/pod-security-standards/, https://kep.k8s.io/4265
"""

from webhook.engine import Fix, Params, Policy, Request, Violations
from webhook.policies._records import having

PATH = "securityContext.procMount"


def validate(request: Request, params: Params) -> Violations:
    """Yield one violation for each container that does not mask /proc."""
    for container in having(request.containers(), "securityContext"):
        proc_mount = container.string(PATH)
        if proc_mount not in (None, "Default"):
            yield container.violation(
                PATH, proc_mount, "must be Default", "remove it", fix_value=None
            )


POLICY = Policy(
    "proc-mount",
    validate=validate,
    category="pod-security",
    fix=Fix(False, "a program that starts containers of its own needs all of /proc"),
)
