"""No binding grants rights to anonymous or unauthenticated users.

Why: a binding to `system:anonymous` or `system:unauthenticated` grants its rights to every client
that can reach the API server, including scanners on the Internet.

Allowed: any other subject; the roles that `allowed` names, by default those that Kubernetes itself
grants this way.
Denied:  the user `system:anonymous`, the group `system:unauthenticated`; the groups that a
parameter denies too.
Fix: bind the role to the users, groups or ServiceAccounts that need it.
"""

from pydantic import Field

from webhook.engine import Params, Policy, Request, Violations
from webhook.engine.violation import shown
from webhook.policies._rbac import BINDINGS, is_by_kubernetes

EVERY_CLIENT = "every client"
PUBLIC = ["system:public-info-viewer", "system:basic-user", "system:discovery"]  # ClusterRoles


class AnonymousBindings(Params):
    """The denied subjects, and the roles for which they are allowed."""

    allowed: list[str] = Field(PUBLIC, description="roles that may be granted to these subjects")
    authenticated: bool = Field(
        False, description="whether system:authenticated (every authenticated user) is denied too"
    )
    masters: bool = Field(
        False, description="whether system:masters is denied too, whose rights RBAC cannot revoke"
    )


def validate(request: Request, params: AnonymousBindings) -> Violations:
    """Yield a violation for each subject that includes unauthenticated clients or is denied."""
    role = request.string("roleRef.name") or ""
    # A Role of the namespace with the name of a default ClusterRole.
    is_own = role in PUBLIC and request.string("roleRef.kind") == "Role"
    if is_by_kubernetes(request) or (role in params.allowed and not is_own):
        return
    denied = {"User system:anonymous": EVERY_CLIENT, "Group system:unauthenticated": EVERY_CLIENT}
    if params.authenticated:
        denied["Group system:authenticated"] = EVERY_CLIENT
    if params.masters:
        denied["Group system:masters"] = "a group whose rights RBAC cannot revoke"
    for index, subject in enumerate(request.each("subjects")):
        name = subject.string("name")
        if clients := denied.get(f"{subject.string('kind')} {name}"):
            rule = f"{shown(role)} must not be granted to {clients}"
            yield request.violation(
                f"subjects[{index}].name", name, rule, "bind it to the subjects that need it"
            )


POLICY = Policy(
    "anonymous-bindings",
    AnonymousBindings,
    validate=validate,
    kinds=BINDINGS,
    category="rbac",
    severity="critical",
)
