"""Containers see /proc with its sensitive parts masked.

Why: the runtime hides parts of /proc that tell about the node, or change it. `Unmasked` is meant for containers that
make containers, within a user namespace.

Allowed: no `procMount`, or `Default`.
Denied:  `procMount: Unmasked`.
Fix: remove it.
See: https://kubernetes.io/docs/concepts/security/pod-security-standards/, https://kep.k8s.io/4265
"""

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from webhook.engine import Params, Policy, Request, Violation
from webhook.engine.fields import shown
from webhook.engine.security_contexts import in_user_namespace

PATH = "securityContext.procMount"


class ProcMount(Params):
    """How /proc may be mounted."""

    allowed: list[Literal["Default", "Unmasked"]] = Field(["Default"], description="types that may be set")
    exempt_user_namespaces: bool = Field(False, description="leave pods with `hostUsers: false` alone")


def validate(request: Request, params: ProcMount) -> Iterator[Violation]:
    """Yield a violation for each container whose /proc may not be mounted so."""
    if params.exempt_user_namespaces and in_user_namespace(request.pod()):
        return
    for container in request.containers():
        found = container.string(PATH)
        if found is not None and found not in params.allowed:
            rule = f"must be {' or '.join(params.allowed) or 'left out'}"
            yield Violation(container.path(PATH), shown(found), rule, "remove it")


POLICY = Policy("proc-mount", ProcMount, validate=validate, category="pod-security")
