"""No role grants privilege escalation: `escalate`, `bind` or `impersonate`.

Why: with `escalate` or `bind` on roles a subject can grant itself every right; with `impersonate` it can act as any
user or group, including `system:masters`.

Judged: the rules of Roles and ClusterRoles. The verb `*` includes these verbs where the rule covers the resources that
they act on. Roles that Kubernetes itself writes are ignored.

Allowed: every other verb.
Denied:  `{apiGroups: [rbac.authorization.k8s.io], resources: [clusterroles], verbs: [bind]}`; `verbs: [impersonate]`.
Fix: remove the verb; leave such changes to subjects that have the rights already.
"""

from typing import Literal

from pydantic import Field

from webhook.engine import Fields, Params, Policy, Request, Violations
from webhook.engine.violation import shown
from webhook.policies._rbac import GROUP, ROLES, Reach, reach, rules

EXTRAS = "userextras"  # their subresources are the keys of what is known of a user beside names: userextras/scopes
ACTED_ON = {  # verb: API groups and resources
    "escalate": ({GROUP}, {"roles", "clusterroles"}),
    "bind": ({GROUP}, {"roles", "clusterroles"}),
    "impersonate": ({"", "authentication.k8s.io"}, {"users", "groups", "serviceaccounts", "uids", EXTRAS}),
}


class EscalationRights(Params):
    """Which verbs no role may give."""

    verbs: list[Literal["escalate", "bind", "impersonate"]] = Field(
        ["escalate", "bind", "impersonate"], min_length=1, description="verbs that no role may grant"
    )


def validate(request: Request, params: EscalationRights) -> Violations:
    """Yield one violation for each such verb, and for each wildcard that holds one."""
    for rule in rules(request):
        verbs = rule.strings("verbs")
        implied = [each for each in params.verbs if _is_about(rule, *ACTED_ON[each])] if "*" in verbs else []
        given: Reach | None = None  # compared as one set: the verbs times the resources may be millions
        for index, verb in enumerate(verbs):
            if verb == "*" and implied:
                found = f"{shown(verb)} includes {' and '.join(implied)}"
            elif verb.partition(":")[0] in params.verbs:
                found = shown(verb)
            else:
                continue
            given = given or reach(rule)
            fault = "no role may let its subjects grant themselves more rights"
            yield rule.violation(f"verbs[{index}]", verb, fault, "remove it", found=found, excess=given)


def _is_about(rule: Fields, groups: set[str], resources: set[str]) -> bool:
    """Return whether a rule is about one of some resources. A subresource is not its resource, but of userextras."""
    if not {"*", *groups}.intersection(rule.strings("apiGroups")):
        return False
    wanted = {"*", *resources}
    return any((EXTRAS if each.startswith(f"{EXTRAS}/") else each) in wanted for each in rule.strings("resources"))


POLICY = Policy(
    "escalation-rights", EscalationRights, validate=validate, kinds=ROLES, category="rbac", severity="critical"
)
