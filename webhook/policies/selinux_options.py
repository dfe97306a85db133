"""Containers use only approved SELinux types, and no custom user or role.

Why: another type, user or role can remove a process from SELinux's confinement of containers.

Allowed: nothing set; an approved `type`, such as `container_t`.
Denied:  `type: spc_t`; a `user` or `role`.
Fix: remove the field, or set an allowed type.
See: https://kubernetes.io/docs/concepts/security/pod-security-standards/#baseline
"""

from pydantic import Field

from webhook.engine import Params, Policy, Request, Violations
from webhook.policies._security_contexts import contexts, inheriting_containers

OPTIONS = "securityContext.seLinuxOptions"
TYPES_1_0 = ["container_t", "container_init_t", "container_kvm_t"]
TYPES_1_31 = [*TYPES_1_0, "container_engine_t"]


class SELinuxParams(Params):
    """The SELinux labels that may be set; null allows any."""

    types: list[str] | None = Field(TYPES_1_31, description="types that may be set")
    users: list[str] | None = Field([], description="users that may be set")
    roles: list[str] | None = Field([], description="roles that may be set")
    levels: list[str] | None = Field(None, description="levels that may be set")


def validate(request: Request, params: SELinuxParams) -> Violations:
    """Yield a violation for each label that may not be set."""
    for context in contexts(request):
        for field in ("type", "user", "role", "level") if context.is_set(OPTIONS) else ():
            path, allowed = f"{OPTIONS}.{field}", getattr(params, f"{field}s")
            label = context.string(path)
            if label and allowed is not None and label not in allowed:
                must, no = f"the SELinux {field} must be", f"no SELinux {field} may be set"
                rule = f"{must} {', '.join(allowed)}" if allowed else no
                excess = inheriting_containers(request, context, OPTIONS, label)
                yield context.violation(path, label, rule, "remove it", excess=excess)


POLICY = Policy("selinux-options", SELinuxParams, validate=validate, category="pod-security")
