"""RBAC rules of Gatewright's processes and users, derived from the resources that the kinds own and read.

Pure functions; the chart puts the rules into roles (`render` writes the file that the chart reads).
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

import yaml

from config.api.definition import Definition
from config.api.meta import CustomResource
from config.api.policy import GROUP, AdmissionPolicy, ClusterAdmissionPolicy, PolicyException
from config.crds import of_several_versions

HEADER = "# Generated from what the kinds own and read by `make manifests`; do not edit.\n"
READ = ("get", "list", "watch")
CREATE = (*READ, "create")
APPLY = (*CREATE, "patch")  # server-side apply of an object that is not there yet needs both
EDIT = (*READ, "create", "delete", "patch", "update")
Rule = dict[str, list[str]]
Rights = dict[tuple[str, str], set[str]]  # verbs by group and resource
POLICIES = [kind.definition for kind in (AdmissionPolicy, ClusterAdmissionPolicy, PolicyException)]


class Place(NamedTuple):
    """A resource that none of our types declares."""

    group: str
    plural: str


_NAMESPACES, _LIMIT_RANGES = Place("", "namespaces"), Place("", "limitranges")


class Named(Protocol):
    """What has a place in the API."""

    @property
    def group(self) -> str:
        """API group; empty for the core group."""

    @property
    def plural(self) -> str:
        """Name of the resource in paths."""


class Kind(Protocol):
    """A kind, its children, what else its planner reads, and its finalizer: a PlannedKind says all of it."""

    @property
    def type(self) -> type[CustomResource]:
        """The type of its objects."""

    @property
    def owns(self) -> Sequence[Named]:
        """Where its children live."""

    @property
    def creates_only(self) -> Sequence[Named]:
        """Where those of its children live that are created and never changed."""

    @property
    def reads(self) -> Collection[Named]:
        """Where what it reads lives."""

    @property
    def patches(self) -> Sequence[Named]:
        """Where the objects live of which it writes some fields."""

    @property
    def deletes(self) -> Sequence[Named]:
        """Where the objects live that it deletes."""

    @property
    def finalizer(self) -> str | None:
        """What keeps a deleted object until the clean-up is done."""


def controller(kinds: Iterable[Kind]) -> list[Rule]:
    """List the rights that reconciling `kinds` takes, everywhere in the cluster."""
    rights: Rights = {("events.k8s.io", "events"): {"create", "patch"}}
    for about in POLICIES:
        _grant(rights, about, READ)
        _grant(rights, about, ["patch"], "/status")
    for kind in kinds:
        _grant_kind(rights, kind)
    return _rules(rights)


def _rights(kind: Kind) -> Rights:
    """List what reconciling one kind takes."""
    rights: Rights = {}
    _grant_kind(rights, kind)
    return rights


def _grant_kind(rights: Rights, kind: Kind) -> None:
    about = kind.type.definition
    _grant(rights, about, (*READ, "patch") if kind.finalizer else READ)
    _grant(rights, about, ["patch"], "/status")
    _grant(rights, about, ["update"], "/finalizers")  # lets it block the deletion of an owner
    for owned in kind.owns:
        _grant(rights, owned, CREATE if owned in kind.creates_only else APPLY)
    for read in kind.reads:
        _grant(rights, read, READ)
    for patched in kind.patches:
        _grant(rights, patched, ["patch"])
    for deleted in kind.deletes:
        _grant(rights, deleted, ["delete"])


def _grant(rights: Rights, resource: Named, verbs: Iterable[str], subresource: str = "") -> None:
    rights.setdefault((resource.group, resource.plural + subresource), set()).update(verbs)


def _rules(rights: Rights) -> list[Rule]:
    return [rule(group, [resource], verbs) for (group, resource), verbs in sorted(rights.items())]


def of_kind(kind: Kind) -> list[Rule]:
    """List the rights that reconciling one kind takes, beside those that all kinds share."""
    return _rules(_rights(kind))


def webhook(looked_up: Iterable[Named] = ()) -> list[Rule]:
    """List what the webhook reads: policies, exceptions, namespaces and what policies look up. It writes nothing."""
    return [
        rule("", ["namespaces"], READ),
        rule(GROUP, [about.plural for about in POLICIES], READ),
        *(rule(group, [plural], READ) for group, plural in sorted({(each.group, each.plural) for each in looked_up})),
    ]


def audit(audited: Iterable[Named]) -> list[Rule]:
    """List what the audit takes: to list what policies judge, and to write reports."""
    listed: Rights = {}
    for each in audited:
        _grant(listed, each, ["list"])
    _grant(listed, _NAMESPACES, ["list"])
    _grant(listed, _LIMIT_RANGES, ["list"])
    write = ("create", "delete", "get", "list", "patch")
    return [
        *_rules(listed),
        rule("openreports.io", ["reports", "clusterreports"], write),
        rule("wgpolicyk8s.io", ["policyreports", "clusterpolicyreports"], write),
    ]


def conversion(crds: Iterable[str]) -> list[Rule]:
    """List what saying in CRDs where their objects are converted takes: these CRDs by name, and no other."""
    about = rule("apiextensions.k8s.io", ["customresourcedefinitions"], ["list", "patch", "watch"])
    return [about | {"resourceNames": list(crds)}]


def people(definitions: Iterable[Definition]) -> dict[str, list[Rule]]:
    """List what people with the roles view, edit and admin may do with our kinds."""
    roles: dict[str, list[Rule]] = {"view": [], "edit": [], "admin": []}
    for about in sorted(definitions, key=lambda each: each.name):
        scale = [f"{about.plural}/scale"] if about.scale else []
        if (
            about.group == GROUP
        ):  # a tenant may restrict and except what is its own; cluster policies are the platform's
            roles["view"] += [rule(about.group, [about.plural], READ)]
            roles["admin"] += [rule(about.group, [about.plural], EDIT)] if about.namespaced else []
            continue
        roles["view"] += [rule(about.group, [about.plural, f"{about.plural}/status", *scale], READ)]
        roles["edit"] += [rule(about.group, [about.plural, *scale], EDIT)]
        roles["admin"] += [rule(about.group, [about.plural, *scale], (*EDIT, "deletecollection"))]
    return roles


def rule(group: str, resources: Iterable[str], verbs: Iterable[str]) -> Rule:
    """Write one rule, its verbs in order."""
    return {"apiGroups": [group], "resources": list(resources), "verbs": sorted(verbs)}


def render(kinds: Sequence[Kind], looked_up: Iterable[Named] = (), audited: Iterable[Named] = ()) -> str:
    """Write all rules as YAML, the file that the chart fills its roles from."""
    rules = {
        "controller": controller(kinds),
        "shared": controller(()),
        "kinds": {kind.type.definition.kind.lower(): of_kind(kind) for kind in kinds},
        "conversion": conversion(of_several_versions()),
        "webhook": webhook(looked_up),
        "audit": audit(audited),
    }
    ours = [*POLICIES, *(kind.type.definition for kind in kinds)]
    return HEADER + yaml.safe_dump({**rules, **people(ours)}, sort_keys=False)


def roles(kind: Kind, namespace: str, controller: str, webhook: str) -> list[dict[str, Any]]:
    """List what gives a kind's rights to the processes' ServiceAccounts and to people, as the chart does for ours.

    Of a kind with a /scale the webhook reads what that scales.
    """
    about = kind.type.definition
    name = f"gatewright-{about.name}"
    looked_up = [rule(about.group, [about.plural], ["get"])] if about.scale else []
    aggregated = [
        _object("ClusterRole", f"{name}-{each}", f"rbac.authorization.k8s.io/aggregate-to-{each}") | {"rules": rules}
        for each, rules in people([about]).items()
    ]
    return [
        *_bound(name, _rules(_rights(kind)), namespace, controller),
        *(_bound(f"{name}-webhook", looked_up, namespace, webhook) if looked_up else ()),
        *aggregated,
    ]


def _bound(name: str, rules: list[Rule], namespace: str, account: str) -> list[dict[str, Any]]:
    """List a ClusterRole and its binding to a ServiceAccount."""
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
    subject = {"kind": "ServiceAccount", "name": account, "namespace": namespace}
    return [
        _object("ClusterRole", name) | {"rules": rules},
        _object("ClusterRoleBinding", name) | {"roleRef": role, "subjects": [subject]},
    ]


def _object(kind: str, name: str, *labels: str) -> dict[str, Any]:
    metadata = {"name": name, "labels": {"app.kubernetes.io/name": "gatewright", **dict.fromkeys(labels, "true")}}
    return {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": metadata}
