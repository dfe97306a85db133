"""Read RBAC objects, and recognize writes of Kubernetes itself."""

from collections.abc import Callable, Iterable, Iterator, Set
from functools import partial

from webhook.engine.fields import Fields
from webhook.engine.look_ups import read_each
from webhook.engine.match import meets
from webhook.engine.request import Request
from webhook.engine.violation import Violation
from webhook.policies._records import DEFAULT_ROLE, LabelRequirement, requirements

RuleJudge = Callable[[Fields], Iterator[Violation]]

CLUSTER_ROLES = "cluster_roles"  # look-up: name, labels and rules of all ClusterRoles
SELECTORS = "aggregationRule.clusterRoleSelectors"
ROLES = ("ClusterRole", "Role")
BINDINGS = ("ClusterRoleBinding", "RoleBinding")

# In every cluster; a selector of roles without a label selects it.
CLUSTER_ADMIN = Fields(
    {
        "metadata": {
            "name": "cluster-admin",
            "labels": dict([DEFAULT_ROLE]),
        },
        "rules": [
            {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
            {"nonResourceURLs": ["*"], "verbs": ["*"]},
        ],
    }
)

NAMES, ANY_NAME = "resourceNames", "of any name"
PARTS = ("apiGroups", "resources", "verbs", "nonResourceURLs", NAMES)

SYSTEM_WRITERS = frozenset(
    {
        # creates the default roles when it starts, and is not ready until it has
        "system:apiserver",
        # copies the rules of other roles
        "system:serviceaccount:kube-system:clusterrole-aggregation-controller",
    }
)


def is_by_kubernetes(request: Request) -> bool:
    """Return whether Kubernetes itself writes: its own objects, or copies of judged rules."""
    return request.attributes.username in SYSTEM_WRITERS


def judge_rules(request: Request, judge: RuleJudge, rule: str) -> Iterator[Violation]:
    """Yield the violations in the rules of a role, and one for each role with any that it selects.

    Roles that Kubernetes itself writes are not judged. `rule` is the text for a selector of all
    roles, of which some break every rule.
    """
    if is_by_kubernetes(request):
        return
    for entry in request.each("rules"):
        yield from judge(entry)
    for index, selector in enumerate(request.each(SELECTORS)):
        path = f"{SELECTORS}[{index}]"
        required = requirements(selector)
        if not required:
            fix = "select the roles by a label"
            yield Violation(path, "empty, which selects all ClusterRoles", rule, fix)
            continue
        read = partial(_first_violation, judge, required)
        selected = dict([read(CLUSTER_ADMIN), *read_each(request.lookup(CLUSTER_ROLES), read)])
        for name, violation in selected.items():
            if violation is not None and name != request.name:
                found = f"selects ClusterRole {name}, with {violation.path}"
                found = f"{found}: {violation.found_text}"
                yield Violation(path, found, violation.rule, "do not select it", id=f"{name}")


def _first_violation(
    judge: RuleJudge, required: Iterable[LabelRequirement], role: Fields
) -> tuple[str | None, Violation | None]:
    """Return the name of a role, and its first violation if its labels are as `required`."""
    labels = role.texts("metadata.labels")
    is_selected = all(meets(labels, *each) for each in required)
    violations = (found for each in role.each("rules") for found in judge(each))
    return role.string("metadata.name"), next(violations, None) if is_selected else None


class Reach(frozenset[str]):
    """All rights of a rule; rights that a wildcard already includes do not add to it."""

    def __le__(self, other: Set[object]) -> bool:
        wider = [
            f"{part} " for part in PARTS if (ANY_NAME if part == NAMES else f"{part} *") in other
        ]
        return all(each in other or each.startswith(tuple(wider)) for each in self)


def reach(rule: Fields) -> Reach:
    """Return all rights of a rule: each verb for each resource is a separate right."""
    given = {f"{part} {each}" for part in PARTS for each in rule.strings(part)}
    return Reach(given if rule.strings(NAMES) else {*given, ANY_NAME})
