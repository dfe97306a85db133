"""Containers use only approved SELinux types, and no custom user or role.

Why: another type, user or role can remove a process from SELinux's confinement of containers.

Allowed: nothing set; an approved `type`, such as `container_t`.
Denied:  `type: spc_t`; a `user` or `role`.
Fix: remove the field, or set an allowed type.
See: https://kubernetes.io/docs/concepts/security/pod-security-standards/#baseline
"""

from pydantic import Field

from webhook.engine import Params, Policy, Request, Violations
from webhook.policies._security_contexts import contexts, inherited

OPTIONS = "securityContext.seLinuxOptions"
TYPES_1_0 = ["container_t", "container_init_t", "container_kvm_t"]
TYPES_1_31 = [*TYPES_1_0, "container_engine_t"]


class SELinuxParams(Params):
    """Which SELinux labels may be set; for each, null stands for any."""

    types: list[str] | None = Field(TYPES_1_31, description="types that may be set")
    users: list[str] | None = Field([], description="users that may be set")
    roles: list[str] | None = Field([], description="roles that may be set")
    levels: list[str] | None = Field(None, description="levels that may be set")


def validate(request: Request, params: SELinuxParams) -> Violations:
    """Yield a violation for each label that may not be set."""
    labels = {
        "type": params.types,
        "user": params.users,
        "role": params.roles,
        "level": params.levels,
    }
    for context in contexts(request):
        for field, allowed in labels.items() if context.is_set(OPTIONS) else ():
            found = context.string(f"{OPTIONS}.{field}")
            if found and allowed is not None and found not in allowed:
                names = ", ".join(allowed)
                rule = (
                    f"the SELinux {field} must be {names}"
                    if names
                    else f"no SELinux {field} may be set"
                )
                excess = inherited(request, context, OPTIONS, found)
                yield context.violation(
                    f"{OPTIONS}.{field}", found, rule, "remove it", excess=excess
                )


POLICY = Policy("selinux-options", SELinuxParams, validate=validate, category="pod-security")
