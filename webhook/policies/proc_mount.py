"""Containers see /proc with its sensitive parts masked.

Why: the runtime masks parts of /proc that expose or change the node's state. `Unmasked` is intended for nested
containers in a user namespace.

Allowed: no `procMount`, or `Default`.
Denied:  `procMount: Unmasked`.
Fix: remove it.
See: https://kubernetes.io/docs/concepts/security/pod-security-standards/, https://kep.k8s.io/4265
"""

from pydantic import Field

from webhook.engine import Params, Policy, Request, Violations
from webhook.policies._records import having
from webhook.policies._security_contexts import in_user_namespace

PATH = "securityContext.procMount"


class ProcMount(Params):
    """Which pods are skipped."""

    exempt_user_namespaces: bool = Field(False, description="skip pods with `hostUsers: false`")


def validate(request: Request, params: ProcMount) -> Violations:
    """Yield one violation for each container that does not mask /proc."""
    if params.exempt_user_namespaces and in_user_namespace(request.pod()):
        return
    for container in having(request.containers(), "securityContext"):
        found = container.string(PATH)
        if found not in (None, "Default"):
            yield container.violation(PATH, found, "must be Default", "remove it", mended=None)


POLICY = Policy("proc-mount", ProcMount, validate=validate, category="pod-security")
