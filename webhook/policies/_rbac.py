"""What RBAC objects say, and who keeps those that belong to Kubernetes itself."""

from collections.abc import Iterator
from typing import Any

from webhook.engine.fields import Fields
from webhook.engine.request import Request

ROLES = ("ClusterRole", "Role")
BINDINGS = ("ClusterRoleBinding", "RoleBinding")
GROUP = "rbac.authorization.k8s.io"

NAME, ANY_NAME = "name ", "of any name"
PARTS = ("apiGroups", "resources", "verbs", "nonResourceURLs")

KEEPERS = frozenset(
    {
        "system:apiserver",  # makes the default roles when it starts, and is not ready before it could
        "system:serviceaccount:kube-system:clusterrole-aggregation-controller",  # copies the rules of other roles
    }
)


def is_kept(request: Request) -> bool:
    """Return whether Kubernetes itself asks: what it writes is its own, or was judged where it was copied from."""
    return request.attributes.username in KEEPERS


def rules(request: Request) -> Iterator[Fields]:
    """Yield the rules of a role; those that Kubernetes itself writes are left out."""
    if not is_kept(request):
        yield from request.each("rules")


class Reach(frozenset[str]):
    """All that a rule gives. One for some names gives no more than the same one for any name."""

    def __le__(self, other: Any) -> bool:
        named = {each for each in self if each.startswith(NAME)} if ANY_NAME in other else set[str]()
        return frozenset(self - named) <= frozenset(other)


def reach(rule: Fields) -> Reach:
    """Return all that a rule gives: a verb of one resource is not the same verb of another."""
    given = {f"{part} {each}" for part in PARTS for each in rule.strings(part)}
    return Reach(given | ({f"{NAME}{each}" for each in rule.strings("resourceNames")} or {ANY_NAME}))
