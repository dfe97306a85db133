"""Nobody else becomes cluster-admin.

Why: `cluster-admin` may do everything, in every namespace, to every object; what it was given for mostly needs little
of that.

Judged: RoleBindings and ClusterRoleBindings. One that Kubernetes itself makes is let be.

Allowed: any other role; subjects that `allowed` names.
Denied:  `roleRef: {kind: ClusterRole, name: cluster-admin}`.
Fix: bind a role with the rights that are needed.
"""

from collections.abc import Iterator
from functools import cached_property

from pydantic import Field

from webhook.engine import Fields, Params, Policy, Request, Violation
from webhook.engine.globs import Globs
from webhook.engine.rbac import BINDINGS, is_kept


class ClusterAdminBindings(Params):
    """Which roles are too much, and for whom they are not."""

    roles: list[str] = Field(["cluster-admin"], min_length=1, description="ClusterRoles that nobody else may be given")
    allowed: list[str] = Field(
        ["Group:system:masters"],
        description="subjects (globs) who may have them: User:NAME, Group:NAME, ServiceAccount:NAMESPACE:NAME",
    )

    @cached_property
    def globs(self) -> Globs:
        """The allowed subjects, compiled."""
        return Globs(self.allowed)


def validate(request: Request, params: ClusterAdminBindings) -> Iterator[Violation]:
    """Yield one violation for each subject that would get such a role."""
    role = request.string("roleRef.name") or ""
    if is_kept(request) or request.string("roleRef.kind") != "ClusterRole" or role not in params.roles:
        return
    for index, subject in enumerate(request.each("subjects")):
        name = _named(subject)
        if not params.globs.match(name):
            rule = f"nobody else may be given {role}"
            yield request.violation(
                f"subjects[{index}].name", name, rule, "bind a role with the rights that are needed"
            )


def _named(subject: Fields) -> str:
    parts = (subject.string("kind"), subject.string("namespace"), subject.string("name"))
    return ":".join(part for part in parts if part)


POLICY = Policy(
    "cluster-admin-bindings",
    ClusterAdminBindings,
    validate=validate,
    kinds=BINDINGS,
    category="rbac",
    severity="critical",
)
