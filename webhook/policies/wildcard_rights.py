"""Roles contain no wildcards.

Why: `*` includes every kind that is installed later, and every verb that Kubernetes adds. Judged:
roles, and the ClusterRoles that they select by an `aggregationRule`, which are looked up; but not
those that Kubernetes itself writes. An empty selector selects all ClusterRoles, and one
of roles without a label selects `cluster-admin`.

Allowed: `{apiGroups: [apps], resources: [deployments], verbs: [get, list, watch]}`.
Denied:  `*` among verbs, resources or API groups; `*/scale` and `*/*` among resources; `/*` among
non-resource URLs.
Fix: list the verbs, resources and API groups that are needed.
"""

from typing import Literal

from pydantic import Field

from webhook.engine import Fields, Params, Policy, Request, Violations
from webhook.policies._rbac import CLUSTER_ROLES, ROLES, judge_rules, reach

RULE = "a role must list the rights that it grants"


class WildcardRights(Params):
    """The parts of a rule that must not have wildcards."""

    fields: list[Literal["verbs", "resources", "apiGroups", "nonResourceURLs"]] = Field(
        ["verbs", "resources", "apiGroups", "nonResourceURLs"],
        min_length=1,
        description="parts of a rule that must not contain a wildcard",
    )


def validate(request: Request, params: WildcardRights) -> Violations:
    """Yield one violation for each wildcard."""
    return judge_rules(request, lambda rule: _wildcards(rule, params), RULE)


def _wildcards(rule: Fields, params: WildcardRights) -> Violations:
    given = reach(rule)
    for field in params.fields:
        for index, value in enumerate(rule.strings(field)):
            # RBAC reads several stars at the end of a URL as one.
            is_wildcard = value.endswith("*") and value.rstrip("*") in ("", "/")
            if is_wildcard or value.startswith("*/"):
                yield rule.violation(
                    f"{field}[{index}]", value, RULE, "list what is needed", excess=given
                )


POLICY = Policy(
    "wildcard-rights",
    WildcardRights,
    validate=validate,
    kinds=ROLES,
    category="rbac",
    severity="high",
    needs=(CLUSTER_ROLES,),
)
