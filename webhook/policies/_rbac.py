"""Read RBAC objects, and recognize writes of Kubernetes itself."""

from collections.abc import Iterator, Set

from webhook.engine.fields import Fields
from webhook.engine.request import Request

ROLES = ("ClusterRole", "Role")
BINDINGS = ("ClusterRoleBinding", "RoleBinding")

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


def rules(request: Request) -> Iterator[Fields]:
    """Yield the rules of a role; those that Kubernetes itself writes are left out."""
    if not is_by_kubernetes(request):
        yield from request.each("rules")


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
