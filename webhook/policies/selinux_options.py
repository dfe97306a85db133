"""Containers use only approved SELinux types, and no custom user or role.

Why: another type, user or role can remove a process from SELinux's confinement of containers.

Judged: `securityContext.seLinuxOptions` of the pod and of each container.

Allowed: nothing set; an approved `type`, such as `container_t`.
Denied:  `type: spc_t`; a `user` or `role`.
Fix: remove the field, or set an allowed type.
See: https://kubernetes.io/docs/concepts/security/pod-security-standards/#baseline
"""

from collections.abc import Callable

from pydantic import Field

from webhook.engine import Fields, Params, Policy
from webhook.engine.forbids import Judge, all_of, forbids
from webhook.engine.security_contexts import contexts

TYPES_1_0 = ["container_t", "container_init_t", "container_kvm_t"]
TYPES_1_31 = [*TYPES_1_0, "container_engine_t"]


class SELinuxOptions(Params):
    """Which SELinux labels may be set; for each, null stands for any."""

    types: list[str] | None = Field(TYPES_1_31, description="types that may be set")
    users: list[str] | None = Field([], description="users that may be set")
    roles: list[str] | None = Field([], description="roles that may be set")
    levels: list[str] | None = Field(None, description="levels that may be set")


def _label(field: str, allowed: Callable[[SELinuxOptions], list[str] | None]) -> Judge:
    """Return the judge of one of the labels."""

    def rule(params: SELinuxOptions) -> str:
        names = ", ".join(allowed(params) or ())
        return f"the SELinux {field} must be {names}" if names else f"no SELinux {field} may be set"

    def unless(found: str | None, params: SELinuxOptions) -> bool:
        names = allowed(params)
        return not found or names is None or found in names

    path = f"securityContext.seLinuxOptions.{field}"
    return forbids(
        lambda request, params: contexts(request), path, Fields.string, unless=unless, rule=rule, fix="remove it"
    )


validate = all_of(
    _label("type", lambda params: params.types),
    _label("user", lambda params: params.users),
    _label("role", lambda params: params.roles),
    _label("level", lambda params: params.levels),
)

POLICY = Policy("selinux-options", SELinuxOptions, validate=validate, category="pod-security")
