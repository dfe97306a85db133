"""Only approved subjects are bound to cluster-admin.

Why: `cluster-admin` grants every right in every namespace; most subjects that are bound to it need
only a few.

Judged: RoleBindings and ClusterRoleBindings. Bindings that Kubernetes itself creates are ignored.

Allowed: any other role; subjects listed in `allowed`.
Denied:  `roleRef: {kind: ClusterRole, name: cluster-admin}`.
Fix: bind a role with the rights that are needed.
"""

from pydantic import Field

from webhook.engine import Params, Policy, Request, Violations
from webhook.engine.globs import Globs
from webhook.policies._rbac import BINDINGS, is_by_kubernetes

ROLE = "cluster-admin"
RULE = f"only approved subjects may be bound to {ROLE}"


class ClusterAdminBindings(Params):
    """Which subjects may be bound to it."""

    allowed: Globs = Field(
        Globs(["Group:system:masters"]),
        description="subjects (globs) that may be: User:NAME, Group:NAME, "
        "ServiceAccount:NAMESPACE:NAME",
    )


def validate(request: Request, params: ClusterAdminBindings) -> Violations:
    """Yield one violation for each subject that is bound to the role."""
    role = request.string("roleRef.kind"), request.string("roleRef.name")
    if is_by_kubernetes(request) or role != ("ClusterRole", ROLE):
        return
    for index, subject in enumerate(request.each("subjects")):
        kind, name = subject.string("kind") or "", subject.string("name") or ""
        if kind == "ServiceAccount":  # without a namespace, it is in that of the RoleBinding
            name = f"{subject.string('namespace') or request.attributes.namespace}:{name}"
        if not params.allowed.match(f"{kind}:{name}"):
            fix = "bind a role with the rights that are needed"
            yield request.violation(f"subjects[{index}].name", f"{kind}:{name}", RULE, fix)


POLICY = Policy(
    "cluster-admin-bindings",
    ClusterAdminBindings,
    validate=validate,
    kinds=BINDINGS,
    category="rbac",
    severity="critical",
)
