"""Containers see /proc with its sensitive parts masked.

Why: the runtime masks parts of /proc that expose or change the node's state. `Unmasked` is intended for nested
containers in a user namespace.

Allowed: no `procMount`, or `Default`.
Denied:  `procMount: Unmasked`.
Fix: remove it.
See: https://kubernetes.io/docs/concepts/security/pod-security-standards/, https://kep.k8s.io/4265
"""

from typing import Literal

from pydantic import Field

from webhook.engine import Fields, Params, Policy
from webhook.policies._forbids import containers, forbids
from webhook.policies._security_contexts import in_user_namespace


class ProcMount(Params):
    """How /proc may be mounted."""

    allowed: list[Literal["Default", "Unmasked"]] = Field(["Default"], description="types that may be set")
    exempt_user_namespaces: bool = Field(False, description="skip pods with `hostUsers: false`")


validate = forbids(
    containers,
    "securityContext.procMount",
    Fields.string,
    unless=lambda found, params: found is None or found in params.allowed,
    rule=lambda params: f"must be {' or '.join(params.allowed) or 'left out'}",
    fix="remove it",
    mended=None,
    exempt=lambda request, params: params.exempt_user_namespaces and in_user_namespace(request.pod()),
)

POLICY = Policy("proc-mount", ProcMount, validate=validate, category="pod-security")
