"""RBAC rules for a planned kind: those of the processes, and those of users."""

from collections.abc import Iterable, Sequence
from typing import Any

from config.schemas import is_built_in, root_type
from controller.runtime.events import EVENT
from controller.runtime.explanations import POD
from controller.runtime.kind import PlannedKind
from controller.runtime.obstacles import WORKLOADS
from kube.resource import CRD, Resource, definition_of

RBAC = "rbac.authorization.k8s.io"
ROLES = frozenset({"roles", "clusterroles"})
READ = ("get", "list", "watch")
APPLY = (*READ, "create", "patch")  # server-side apply of a new object needs both
EDIT = (*READ, "create", "delete", "patch", "update")
PolicyRule = dict[str, list[str]]
Rights = dict[tuple[str, str], set[str]]  # verbs by API group and resource


def of_kinds(kinds: Iterable[PlannedKind[Any]]) -> Rights:
    """Return the controller's rights for reconciling kinds."""
    rights: Rights = {}
    for kind in kinds:
        grant(rights, kind.resource, (*READ, "patch") if kind.finalizer else READ)
        grant(rights, kind.resource, ["patch"], "/status")
        # Allows blockOwnerDeletion on its owner references.
        grant(rights, kind.resource, ["update"], "/finalizers")
        for owned in kind.owns:
            grant(rights, owned, APPLY)  # of what is only created, patched to adopt it
        for read in kind.reads:
            grant(rights, read, READ)
        if any(each.kind in {*WORKLOADS, "CronJob"} for each in kind.owns):
            grant(rights, POD, ["list"])  # to explain why a workload is not ready
            grant(rights, EVENT, ["list"])
        for patched in kind.patches:
            grant(rights, patched, ["patch"])
        for deleted in kind.deletes:
            grant(rights, deleted, ["delete"])
    return rights


def of_roles(kinds: Iterable[PlannedKind[Any]]) -> list[PolicyRule]:
    """Return the rules by which kinds may hand on rights: on the roles that they name, alone."""
    rules = []
    for kind in kinds:
        if kind.binds:
            names = list(kind.binds)
            rules.append({**rule(RBAC, ["clusterroles"], ["bind"]), "resourceNames": names})
        roles = [each.plural for each in kind.owns if each.group == RBAC and each.plural in ROLES]
        if kind.escalates and roles:
            names = list(kind.escalates)
            rules.append({**rule(RBAC, roles, ["escalate"]), "resourceNames": names})
    return rules


def of_definitions(resources: Iterable[Resource]) -> list[PolicyRule]:
    """Return the rule for seeing when the CRDs of these resources are installed, and no others."""
    names = sorted({definition_of(each) for each in resources if _has_definition(each)})
    read = rule(CRD.group, [CRD.plural], ["list", "watch"])
    return [{**read, "resourceNames": names}] if names else []


def grant(rights: Rights, resource: Resource, verbs: Iterable[str], subresource: str = "") -> None:
    """Add verbs on a resource, or on a subresource of it."""
    rights.setdefault((resource.group, resource.plural + subresource), set()).update(verbs)


def rules_of(rights: Rights) -> list[PolicyRule]:
    """Return a rule for each resource."""
    return [rule(group, [resource], verbs) for (group, resource), verbs in sorted(rights.items())]


def rule(group: str, resources: Sequence[str], verbs: Iterable[str]) -> PolicyRule:
    """Return one rule with its verbs in order."""
    return {"apiGroups": [group], "resources": list(resources), "verbs": sorted(verbs)}


def of_users(kind: PlannedKind[Any]) -> dict[str, PolicyRule]:
    """Return what the roles view, edit and admin may do with objects of a kind."""
    group, plural = kind.resource.group, kind.resource.plural
    scale = [f"{plural}/scale"] if kind.type.definition.scale else []
    return {
        "view": rule(group, [plural, f"{plural}/status", *scale], READ),
        "edit": rule(group, [plural, *scale], EDIT),
        "admin": rule(group, [plural, *scale], (*EDIT, "deletecollection")),
    }


def roles(
    kind: PlannedKind[Any], namespace: str, controller: str, webhook: str
) -> list[dict[str, Any]]:
    """Return a kind's roles and bindings for the processes and for users.

    For a kind with /scale, the webhook reads the objects that are scaled.
    """
    definition = kind.type.definition
    name = f"gatewright-{definition.name}"
    looked_up = [rule(definition.group, [definition.plural], ["get"])] if definition.scale else []
    aggregated = [
        _object("ClusterRole", f"{name}-{role}", f"{RBAC}/aggregate-to-{role}")
        | {"rules": [granted]}
        for role, granted in of_users(kind).items()
    ]
    rights = of_kinds([kind])
    grant(rights, EVENT, ["create", "patch"])
    rules = [*rules_of(rights), *of_roles([kind]), *of_definitions(kind.optional)]
    return [
        *_bind(name, rules, namespace, controller),
        *(_bind(f"{name}-webhook", looked_up, namespace, webhook) if looked_up else ()),
        *aggregated,
    ]


def _has_definition(resource: Resource) -> bool:
    """Return whether a resource is not Kubernetes' own, so that a CRD defines it."""
    type = root_type(resource.api_version, resource.kind)
    return type is None or not is_built_in(type)


def _bind(name: str, rules: list[PolicyRule], namespace: str, account: str) -> list[dict[str, Any]]:
    """Return a ClusterRole and its binding to a ServiceAccount."""
    role = {"apiGroup": RBAC, "kind": "ClusterRole", "name": name}
    subject = {"kind": "ServiceAccount", "name": account, "namespace": namespace}
    return [
        _object("ClusterRole", name) | {"rules": rules},
        _object("ClusterRoleBinding", name) | {"roleRef": role, "subjects": [subject]},
    ]


def _object(kind: str, name: str, *labels: str) -> dict[str, Any]:
    metadata = {
        "name": name,
        "labels": {"app.kubernetes.io/name": "gatewright", **dict.fromkeys(labels, "true")},
    }
    return {"apiVersion": f"{RBAC}/v1", "kind": kind, "metadata": metadata}
