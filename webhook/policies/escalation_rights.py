"""No role lets its holders give themselves more.

Why: `escalate` on roles and `bind` on roles lead to every right there is; `impersonate` makes one somebody else,
`system:masters` included.

Judged: the rules of Roles and ClusterRoles. A verb `*` holds these verbs too, where the rule is about what they act
on. Roles that Kubernetes itself writes are let be.

Allowed: every other verb.
Denied:  `{apiGroups: [rbac.authorization.k8s.io], resources: [clusterroles], verbs: [bind]}`; `verbs: [impersonate]`.
Fix: remove the verb; let those who have the rights do what needs them.
"""

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from webhook.engine import Fields, Params, Policy, Request, Violation
from webhook.engine.fields import shown
from webhook.engine.rbac import GROUP, ROLES, reach, rules

ACTED_ON = {  # verb: API groups and resources
    "escalate": ({GROUP}, {"roles", "clusterroles"}),
    "bind": ({GROUP}, {"roles", "clusterroles"}),
    "impersonate": ({"", "authentication.k8s.io"}, {"users", "groups", "serviceaccounts", "uids"}),
}


class EscalationRights(Params):
    """Which verbs no role may give."""

    verbs: list[Literal["escalate", "bind", "impersonate"]] = Field(
        ["escalate", "bind", "impersonate"], min_length=1, description="verbs that no role may give"
    )


def validate(request: Request, params: EscalationRights) -> Iterator[Violation]:
    """Yield one violation for each such verb, and for each wildcard that holds one."""
    for rule in rules(request):
        for index, verb in enumerate(rule.strings("verbs")):
            held = [each for each in params.verbs if verb.partition(":")[0] == each]
            if verb == "*":
                held = [each for each in params.verbs if _is_about(rule, *ACTED_ON[each])]
            if held:
                found = shown(verb) if verb != "*" else f"{shown(verb)} holds {' and '.join(held)}"
                path = f"{rule.path('verbs')}[{index}]"
                fault = "no role may let its holders give themselves more"
                yield Violation(path, found, fault, "remove it", reach=reach(rule))


def _is_about(rule: Fields, groups: set[str], resources: set[str]) -> bool:
    named = {resource.partition("/")[0] for resource in rule.strings("resources")}
    return bool({"*", *groups}.intersection(rule.strings("apiGroups")) and {"*", *resources} & named)


POLICY = Policy(
    "escalation-rights", EscalationRights, validate=validate, kinds=ROLES, category="rbac", severity="critical"
)
