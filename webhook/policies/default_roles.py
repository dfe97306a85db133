"""Kubernetes' default roles and bindings are not modified.

Why: `admin`, `edit`, `view` and the `system:` roles are bound to many subjects; changing one
changes the rights of all of them. `system:aggregate-to-edit` with rights on Endpoints is
CVE-2021-25740.

Judged: updates and deletions of roles and bindings with the label `kubernetes.io/bootstrapping:
rbac-defaults`. Kubernetes' own writes are ignored.

Allowed: any other role, also one whose label `rbac.authorization.k8s.io/aggregate-to-edit` adds its
rules to a default role; an update that changes labels or annotations of a default one.
Denied:  an update of a default role's rules, subjects, aggregation or of that label; its deletion.
Fix: create another role, and bind it.
"""

from webhook.engine import Fields, Params, Policy, Request, Violation, Violations
from webhook.policies._rbac import BINDINGS, ROLES, is_by_kubernetes
from webhook.policies._records import DEFAULT_ROLE

LABEL, DEFAULT = DEFAULT_ROLE
PARTS = ("rules", "aggregationRule", "subjects", "roleRef")
STAY = "default roles must not be changed"


def validate(request: Request, params: Params) -> Violations:
    """Yield a violation for each changed part of a default role, and for its deletion."""
    is_deletion = request.attributes.operation == "DELETE"
    before = request if is_deletion else request.before()
    if before is None or is_by_kubernetes(request) or _label(before) != DEFAULT:
        return
    if is_deletion:
        yield Violation("metadata.name", "deleted", STAY, "keep it")
    for part in PARTS:
        if (request.value.get(part) or None) != (before.value.get(part) or None):
            yield Violation(part, "changed", STAY, "create another role, and bind it")
    if _label(request) != _label(before):
        yield Violation(f"metadata.labels[{LABEL}]", "changed", STAY, "keep it")


def _label(role: Fields) -> str | None:
    return role.texts("metadata.labels").get(LABEL)


POLICY = Policy(
    "default-roles",
    validate=validate,
    kinds=(*ROLES, *BINDINGS),
    operations=("UPDATE", "DELETE"),
    category="rbac",
    severity="critical",
)
