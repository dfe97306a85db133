"""SELinux labels stay those of containers.

Why: another type, user or role can put a process outside of the confinement that SELinux gives to containers.

Judged: `securityContext.seLinuxOptions` of the pod and of each container.

Allowed: nothing set; a `type` of containers, such as `container_t`.
Denied:  `type: spc_t`; a `user` or `role`.
Fix: remove the field, or name an allowed type.
See: https://kubernetes.io/docs/concepts/security/pod-security-standards/#baseline
"""

from collections.abc import Iterator

from pydantic import Field

from webhook.engine import Params, Policy, Request, Violation
from webhook.engine.fields import shown
from webhook.engine.security_contexts import contexts

TYPES_1_0 = ["container_t", "container_init_t", "container_kvm_t"]
TYPES_1_31 = [*TYPES_1_0, "container_engine_t"]


class SELinuxOptions(Params):
    """Which SELinux labels may be set; for each, null stands for any."""

    types: list[str] | None = Field(TYPES_1_31, description="types that may be set")
    users: list[str] | None = Field([], description="users that may be set")
    roles: list[str] | None = Field([], description="roles that may be set")
    levels: list[str] | None = Field(None, description="levels that may be set")


def validate(request: Request, params: SELinuxOptions) -> Iterator[Violation]:
    """Yield a violation for each SELinux label that may not be set."""
    labels = {"type": params.types, "user": params.users, "role": params.roles, "level": params.levels}
    for context in contexts(request):
        for field, allowed in labels.items():
            path = f"securityContext.seLinuxOptions.{field}"
            found = context.string(path)
            if found and allowed is not None and found not in allowed:
                rule = (
                    f"the SELinux {field} must be {', '.join(allowed)}" if allowed else f"no SELinux {field} may be set"
                )
                yield Violation(context.path(path), shown(found), rule, "remove it")


POLICY = Policy("selinux-options", SELinuxOptions, validate=validate, category="pod-security")
