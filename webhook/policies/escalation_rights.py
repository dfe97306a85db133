"""No role grants privilege escalation: `escalate`, `bind` or `impersonate`.

Why: with `escalate` or `bind` on roles a subject can grant itself every right; with `impersonate`
it can act as any user or group, including `system:masters`.

Judged: the rules of Roles and ClusterRoles. The verb `*` includes these verbs where the rule covers
the resources that they act on. The ClusterRoles that a role selects by an `aggregationRule` are
looked up; an empty selector selects all. Roles that Kubernetes itself writes are ignored.

Allowed: every other verb.
Denied:  `{apiGroups: [rbac.authorization.k8s.io], resources: [clusterroles], verbs: [bind]}`;
`verbs: [impersonate]`.
Fix: remove the verb; leave such changes to subjects that have the rights already.
"""

from webhook.engine import Fields, Params, Policy, Request, Violations
from webhook.engine.kinds import RBAC
from webhook.policies._rbac import CLUSTER_ROLES, ROLES, judge_rules, reach

RULE = "no role may let its subjects grant themselves more rights"
AUTHENTICATION = "authentication.k8s.io"
# Its subresources are the keys of a user's other attributes: userextras/scopes, thus also */scopes.
EXTRAS = "userextras"
ACTED_ON = {  # verb: API groups and resources
    "escalate": ({"*", RBAC}, {"*", "roles", "clusterroles"}),
    "bind": ({"*", RBAC}, {"*", "roles", "clusterroles"}),
    "impersonate": (
        {"*", "", AUTHENTICATION},
        {"*", "users", "groups", "serviceaccounts", "uids", EXTRAS},
    ),
}


def validate(request: Request, params: Params) -> Violations:
    """Yield one violation for each such verb, and for each wildcard that includes one."""
    return judge_rules(request, _escalations, RULE)


def _escalations(rule: Fields) -> Violations:
    verbs = rule.strings("verbs")
    implied = " and ".join(verb for verb in ACTED_ON if "*" in verbs and _covers(rule, verb))
    given = reach(rule)  # compared as one set: the verbs times the resources may be millions
    for index, verb in enumerate(verbs):
        if (verb == "*" and implied) or verb.partition(":")[0] in ACTED_ON:
            found = f'"*" includes {implied}' if verb == "*" else None
            yield rule.violation(
                f"verbs[{index}]", verb, RULE, "remove it", found=found, excess=given
            )


def _covers(rule: Fields, verb: str) -> bool:
    """Return whether a rule covers a resource that a verb acts on, or such a subresource."""
    groups, resources = ACTED_ON[verb]
    in_groups = {*rule.strings("apiGroups")}
    in_authentication = not in_groups.isdisjoint({"*", AUTHENTICATION})
    of_extras = (f"{EXTRAS}/", "*/") if in_authentication else (f"{EXTRAS}/",)
    named = {EXTRAS if each.startswith(of_extras) else each for each in rule.strings("resources")}
    if in_authentication and "nodes" in named:  # impersonate:arbitrary-node acts on them
        named.add("users")
    return not (groups.isdisjoint(in_groups) or resources.isdisjoint(named))


POLICY = Policy(
    "escalation-rights",
    validate=validate,
    kinds=ROLES,
    category="rbac",
    severity="critical",
    needs=(CLUSTER_ROLES,),
)
