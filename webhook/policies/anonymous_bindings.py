"""No binding grants rights to anonymous or unauthenticated users.

Why: a binding to `system:anonymous` or `system:unauthenticated` grants its rights to every client that can reach the
API server, including scanners on the Internet.

Judged: RoleBindings and ClusterRoleBindings. The roles that Kubernetes itself grants this way are allowed.

Allowed: any other subject; the roles that `allowed` names.
Denied:  the user `system:anonymous`, the group `system:unauthenticated`; with `authenticated`, also the group
         `system:authenticated`, which contains every authenticated user; with `masters`, also the group
         `system:masters`.
Fix: bind the role to the users, groups or ServiceAccounts that need it.
"""

from pydantic import Field

from webhook.engine import Params, Policy, Request, Violations
from webhook.engine.rbac import BINDINGS, is_kept
from webhook.engine.violation import shown

ANYBODY = {("User", "system:anonymous"), ("Group", "system:unauthenticated")}
EVERYBODY = ("Group", "system:authenticated")
MASTERS = ("Group", "system:masters")
PUBLIC = ["system:public-info-viewer", "system:basic-user", "system:discovery"]


class AnonymousBindings(Params):
    """Which roles may be given to whom."""

    allowed: list[str] = Field(PUBLIC, description="roles that may be granted to these subjects")
    authenticated: bool = Field(False, description="whether system:authenticated is denied too")
    masters: bool = Field(False, description="whether system:masters is denied too, whose rights RBAC cannot revoke")


def validate(request: Request, params: AnonymousBindings) -> Violations:
    """Yield one violation for each subject that is anybody."""
    role = request.string("roleRef.name")
    if is_kept(request) or role in params.allowed:
        return
    denied = ANYBODY | ({EVERYBODY} if params.authenticated else set()) | ({MASTERS} if params.masters else set())
    for index, subject in enumerate(request.each("subjects")):
        kind, name = subject.string("kind") or "", subject.string("name") or ""
        if (kind, name) in denied:
            whom = "a group that is above RBAC" if (kind, name) == MASTERS else "anybody who asks"
            rule = f"{shown(role or '')} must not be given to {whom}"
            yield request.violation(f"subjects[{index}].name", name, rule, "bind it to those who need it")


POLICY = Policy(
    "anonymous-bindings", AnonymousBindings, validate=validate, kinds=BINDINGS, category="rbac", severity="critical"
)
