"""Kubernetes' default roles and bindings are not modified.

Why: `admin`, `edit`, `view` and the `system:` roles are bound to many subjects; changing one changes the rights of all
of them. `system:aggregate-to-edit` with rights on Endpoints is CVE-2021-25740.

Judged: updates and deletions of roles and bindings with the label `kubernetes.io/bootstrapping: rbac-defaults`, and of
those listed in `names`. Kubernetes' own writes are ignored. With `aggregation: false`, also ClusterRoles that are
aggregated into `admin`, `edit` or `view` by a label.

Allowed: any other role; an update that changes labels or annotations of a default one.
Denied:  an update of a default role's rules, subjects, aggregation or of that label; its deletion.
Fix: create another role, and bind it.
"""

from pydantic import Field

from webhook.engine import Fields, Params, Policy, Request, Violation, Violations
from webhook.engine.globs import Globs
from webhook.policies._rbac import BINDINGS, ROLES, is_by_kubernetes

LABEL, OURS = "kubernetes.io/bootstrapping", "rbac-defaults"
AGGREGATED = tuple(f"rbac.authorization.k8s.io/aggregate-to-{role}" for role in ("admin", "edit", "view"))
PARTS = ("rules", "aggregationRule", "subjects", "roleRef")
STAY = "default roles must not be changed"


class DefaultRoles(Params):
    """Which roles and bindings are protected."""

    names: Globs = Field(Globs(), description="further roles and bindings (globs) that may not be changed")
    aggregation: bool = Field(
        True, description="whether other ClusterRoles may be aggregated into admin, edit and view"
    )


def validate(request: Request, params: DefaultRoles) -> Violations:
    """Yield a violation for each part of a default role that is changed, and for its deletion."""
    if is_by_kubernetes(request):
        return
    is_deletion = request.attributes.operation == "DELETE"
    before = request if is_deletion else request.before()
    if before is not None and (_label(before) == OURS or params.names.match(before.name)):
        if is_deletion:
            yield Violation("metadata.name", "deleted", STAY, "keep it")
        else:
            yield from _changed(request, before)
    elif not params.aggregation and not is_deletion:
        labels, rules = request.texts("metadata.labels"), request.value.get("rules")
        for label in AGGREGATED:
            if labels.get(label) == "true":  # other rules are another violation: the default role gets them
                path, rule = f"metadata.labels[{label}]", "default roles must not be extended"
                yield Violation(path, '"true"', rule, "remove it", value=rules)


def _label(role: Fields) -> str | None:
    return role.texts("metadata.labels").get(LABEL)


def _changed(request: Request, before: Request) -> Violations:
    for part in PARTS:
        if (request.value.get(part) or None) != (before.value.get(part) or None):
            yield Violation(part, "changed", STAY, "create another role, and bind it")
    if _label(request) != _label(before):
        yield Violation(f"metadata.labels[{LABEL}]", "changed", STAY, "keep it")


POLICY = Policy(
    "default-roles",
    DefaultRoles,
    validate=validate,
    kinds=(*ROLES, *BINDINGS),
    operations=("CREATE", "UPDATE", "DELETE"),
    category="rbac",
    severity="critical",
)
