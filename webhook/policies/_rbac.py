"""Reads RBAC objects, and recognizes the writes of Kubernetes itself."""

from collections.abc import Iterator
from typing import Any

from webhook.engine.fields import Fields
from webhook.engine.request import Request

ROLES = ("ClusterRole", "Role")
BINDINGS = ("ClusterRoleBinding", "RoleBinding")
GROUP = "rbac.authorization.k8s.io"

NAME, ANY_NAME = "name ", "of any name"
PARTS = ("apiGroups", "resources", "verbs", "nonResourceURLs")

SYSTEM_WRITERS = frozenset(
    {
        "system:apiserver",  # creates the default roles when it starts, and is not ready until it has
        "system:serviceaccount:kube-system:clusterrole-aggregation-controller",  # copies the rules of other roles
    }
)


def is_by_kubernetes(request: Request) -> bool:
    """Return whether Kubernetes itself writes: its own objects, or copies of rules that were judged already."""
    return request.attributes.username in SYSTEM_WRITERS


def rules(request: Request) -> Iterator[Fields]:
    """Yield the rules of a role; those that Kubernetes itself writes are left out."""
    if not is_by_kubernetes(request):
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
