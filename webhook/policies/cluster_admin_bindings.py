"""Only approved subjects are bound to cluster-admin.

Why: `cluster-admin` grants every right in every namespace; most subjects that are bound to it need only a few.

Judged: RoleBindings and ClusterRoleBindings. Bindings that Kubernetes itself creates are ignored.

Allowed: any other role; subjects listed in `allowed`.
Denied:  `roleRef: {kind: ClusterRole, name: cluster-admin}`.
Fix: bind a role with the rights that are needed.
"""

from pydantic import Field

from webhook.engine import Params, Policy, Request, Violations
from webhook.engine.globs import Globs
from webhook.policies._rbac import BINDINGS, is_by_kubernetes


class ClusterAdminBindings(Params):
    """Which roles are restricted, and to which subjects."""

    roles: list[str] = Field(
        ["cluster-admin"], min_length=1, description="ClusterRoles that only the allowed subjects may be bound to"
    )
    allowed: Globs = Field(
        Globs(["Group:system:masters"]),
        description="subjects (globs) that may have them: User:NAME, Group:NAME, ServiceAccount:NAMESPACE:NAME",
    )


def validate(request: Request, params: ClusterAdminBindings) -> Violations:
    """Yield one violation for each subject that is bound to such a role."""
    role = request.string("roleRef.name") or ""
    if is_by_kubernetes(request) or request.string("roleRef.kind") != "ClusterRole" or role not in params.roles:
        return
    for index, subject in enumerate(request.each("subjects")):
        kind, name = subject.string("kind") or "", subject.string("name") or ""
        if kind == "ServiceAccount":  # without a namespace, it is in that of the RoleBinding
            name = f"{subject.string('namespace') or request.attributes.namespace}:{name}"
        if not params.allowed.match(f"{kind}:{name}"):
            rule, fix = f"only approved subjects may be bound to {role}", "bind a role with the rights that are needed"
            yield request.violation(f"subjects[{index}].name", f"{kind}:{name}", rule, fix)


POLICY = Policy(
    "cluster-admin-bindings",
    ClusterAdminBindings,
    validate=validate,
    kinds=BINDINGS,
    category="rbac",
    severity="critical",
)
