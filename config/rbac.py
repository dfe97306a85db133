"""RBAC rules for processes and users, derived from what kinds own and read.

Pure functions. `render` returns the file from which the chart builds its roles.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Any, Protocol

import yaml

from config.api.definition import Definition
from config.api.meta import CustomResource
from config.api.policy import GROUP, AdmissionPolicy, ClusterAdmissionPolicy, PolicyException
from config.crds import of_several_versions
from kube.resource import Resource

HEADER = "# Generated from what the kinds own and read by `make manifests`; do not edit.\n"
READ = ("get", "list", "watch")
CREATE = (*READ, "create")
APPLY = (*CREATE, "patch")  # server-side apply of a new object needs both
EDIT = (*READ, "create", "delete", "patch", "update")
PolicyRule = dict[str, list[str]]
Rights = dict[tuple[str, str], set[str]]  # verbs by API group and resource
KUBERNETES_POLICIES = ["validatingadmissionpolicies", "validatingadmissionpolicybindings"]
POLICY_TYPES = (AdmissionPolicy, ClusterAdmissionPolicy, PolicyException)
POLICIES = [kind.definition.resource for kind in POLICY_TYPES]


_NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
_LIMIT_RANGES = Resource("", "v1", "limitranges", "LimitRange")


class KindRights(Protocol):
    """The parts of a PlannedKind that RBAC depends on."""

    @property
    def type(self) -> type[CustomResource]:
        """The type of its objects."""

    @property
    def owns(self) -> Sequence[Resource]:
        """Resources of its children."""

    @property
    def creates_only(self) -> Sequence[Resource]:
        """Resources of children that are created and never changed."""

    @property
    def reads(self) -> Collection[Resource]:
        """Resources that its planner reads."""

    @property
    def patches(self) -> Sequence[Resource]:
        """Resources of which it patches some fields."""

    @property
    def deletes(self) -> Sequence[Resource]:
        """Resources that it deletes."""

    @property
    def finalizer(self) -> str | None:
        """The finalizer that keeps a deleted object until its clean-up is done."""


def controller(kinds: Iterable[KindRights]) -> list[PolicyRule]:
    """Return the cluster-wide rules for reconciling `kinds`."""
    rights: Rights = {("events.k8s.io", "events"): {"create", "patch"}}
    for about in POLICIES:
        _grant(rights, about, READ)
        _grant(rights, about, ["patch"], "/status")
    for kind in kinds:
        _grant_kind(rights, kind)
    return _rules(rights)


def _rights(kind: KindRights) -> Rights:
    """Return the rights for reconciling one kind."""
    rights: Rights = {}
    _grant_kind(rights, kind)
    return rights


def _grant_kind(rights: Rights, kind: KindRights) -> None:
    about = kind.type.definition.resource
    _grant(rights, about, (*READ, "patch") if kind.finalizer else READ)
    _grant(rights, about, ["patch"], "/status")
    # Allows blockOwnerDeletion on its owner references.
    _grant(rights, about, ["update"], "/finalizers")
    for owned in kind.owns:
        _grant(rights, owned, CREATE if owned in kind.creates_only else APPLY)
    for read in kind.reads:
        _grant(rights, read, READ)
    for patched in kind.patches:
        _grant(rights, patched, ["patch"])
    for deleted in kind.deletes:
        _grant(rights, deleted, ["delete"])


def _grant(rights: Rights, resource: Resource, verbs: Iterable[str], subresource: str = "") -> None:
    rights.setdefault((resource.group, resource.plural + subresource), set()).update(verbs)


def _rules(rights: Rights) -> list[PolicyRule]:
    return [rule(group, [resource], verbs) for (group, resource), verbs in sorted(rights.items())]


def of_kind(kind: KindRights) -> list[PolicyRule]:
    """Return the rules for reconciling one kind, without those that all kinds share."""
    return _rules(_rights(kind))


def webhook(looked_up: Iterable[Resource] = ()) -> list[PolicyRule]:
    """Return the webhook's rules: it reads policies, namespaces and what policies look up."""
    return [
        rule("", ["namespaces"], READ),
        rule(GROUP, [about.plural for about in POLICIES], READ),
        *(
            rule(group, [plural], READ)
            for group, plural in sorted({(each.group, each.plural) for each in looked_up})
        ),
    ]


def audit(audited: Iterable[Resource]) -> list[PolicyRule]:
    """Return the audit's rules: list what policies judge, and write reports."""
    listed: Rights = {}
    for each in audited:
        _grant(listed, each, ["list"])
    _grant(listed, _NAMESPACES, ["list"])
    _grant(listed, _LIMIT_RANGES, ["list"])
    write = ("create", "delete", "get", "list", "patch")
    return [
        *_rules(listed),
        rule("admissionregistration.k8s.io", KUBERNETES_POLICIES, ["list", "watch"]),
        rule("openreports.io", ["reports", "clusterreports"], write),
        rule("wgpolicyk8s.io", ["policyreports", "clusterpolicyreports"], write),
    ]


def conversion(crds: Iterable[str]) -> list[PolicyRule]:
    """Return the rules for setting `conversion` in these CRDs and no others."""
    about = rule("apiextensions.k8s.io", ["customresourcedefinitions"], ["list", "patch", "watch"])
    return [about | {"resourceNames": list(crds)}]


def people(definitions: Iterable[Definition]) -> dict[str, list[PolicyRule]]:
    """Return the rules that the roles view, edit and admin get for Gatewright's kinds."""
    roles: dict[str, list[PolicyRule]] = {"view": [], "edit": [], "admin": []}
    for about in sorted(definitions, key=lambda each: each.name):
        scale = [f"{about.plural}/scale"] if about.scale else []
        if (
            about.group == GROUP
            # tenants may restrict and exempt in their own namespace; cluster policies belong to the
            # platform team
        ):
            roles["view"] += [rule(about.group, [about.plural], READ)]
            roles["admin"] += [rule(about.group, [about.plural], EDIT)] if about.namespaced else []
            continue
        roles["view"] += [rule(about.group, [about.plural, f"{about.plural}/status", *scale], READ)]
        roles["edit"] += [rule(about.group, [about.plural, *scale], EDIT)]
        roles["admin"] += [rule(about.group, [about.plural, *scale], (*EDIT, "deletecollection"))]
    return roles


def rule(group: str, resources: Iterable[str], verbs: Iterable[str]) -> PolicyRule:
    """Return one rule with its verbs in order."""
    return {"apiGroups": [group], "resources": list(resources), "verbs": sorted(verbs)}


def render(
    kinds: Sequence[KindRights],
    looked_up: Iterable[Resource] = (),
    audited: Iterable[Resource] = (),
) -> str:
    """Return all rules as YAML, the file from which the chart builds its roles."""
    rules = {
        "controller": controller(kinds),
        "shared": controller(()),
        "kinds": {kind.type.definition.kind.lower(): of_kind(kind) for kind in kinds},
        "conversion": conversion(of_several_versions()),
        "webhook": webhook(looked_up),
        "audit": audit(audited),
    }
    definitions = [
        *(each.definition for each in POLICY_TYPES),
        *(kind.type.definition for kind in kinds),
    ]
    return HEADER + yaml.safe_dump({**rules, **people(definitions)}, sort_keys=False)


def roles(kind: KindRights, namespace: str, controller: str, webhook: str) -> list[dict[str, Any]]:
    """Return a kind's roles and bindings for the processes and for users.

    For a kind with /scale, the webhook reads the objects that are scaled.
    """
    about = kind.type.definition
    name = f"gatewright-{about.name}"
    looked_up = [rule(about.group, [about.plural], ["get"])] if about.scale else []
    aggregated = [
        _object("ClusterRole", f"{name}-{each}", f"rbac.authorization.k8s.io/aggregate-to-{each}")
        | {"rules": rules}
        for each, rules in people([about]).items()
    ]
    return [
        *_bound(name, _rules(_rights(kind)), namespace, controller),
        *(_bound(f"{name}-webhook", looked_up, namespace, webhook) if looked_up else ()),
        *aggregated,
    ]


def _bound(
    name: str, rules: list[PolicyRule], namespace: str, account: str
) -> list[dict[str, Any]]:
    """Return a ClusterRole and its binding to a ServiceAccount."""
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
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
    return {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": metadata}
