"""The RBAC rules of Gatewright's own processes, and of users: the file from which the chart builds its roles."""

from collections.abc import Iterable, Sequence
from typing import Any

import yaml

from config.api.policy import GROUP, AdmissionPolicy, ClusterAdmissionPolicy
from config.api.policy_exception import PolicyException
from config.crds import of_several_versions
from controller.rights import (
    EDIT,
    READ,
    PolicyRule,
    Rights,
    grant,
    of_definitions,
    of_kinds,
    of_users,
    rule,
    rules_of,
)
from controller.runtime.events import EVENT
from controller.runtime.kind import PlannedKind
from kube.resource import Resource
from webhook.engine.look_ups import SCALED_OBJECT

HEADER = "# Generated from what the kinds own and read by `make manifests`; do not edit.\n"
KUBERNETES_POLICIES = ["validatingadmissionpolicies", "validatingadmissionpolicybindings"]
POLICIES = [
    kind.definition.resource for kind in (AdmissionPolicy, ClusterAdmissionPolicy, PolicyException)
]
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
LIMIT_RANGES = Resource("", "v1", "limitranges", "LimitRange")


def controller(kinds: Sequence[PlannedKind[Any]]) -> list[PolicyRule]:
    """The controller's cluster-wide rules: events, policy objects and the kinds."""
    rights = of_kinds(kinds)
    grant(rights, EVENT, ["create", "patch"])
    for policy in POLICIES:
        grant(rights, policy, READ)
        grant(rights, policy, ["patch"], "/status")
    return [*rules_of(rights), *of_definitions([*POLICIES, *optional_of(kinds)])]


def optional_of(kinds: Iterable[PlannedKind[Any]]) -> list[Resource]:
    """The resources that the API server may lack."""
    return [resource for kind in kinds for resource in kind.optional]


def webhook(looked_up: Iterable[Resource] = ()) -> list[PolicyRule]:
    """The webhook's rules: it reads policies, namespaces and what policies look up."""
    return [
        rule("", ["namespaces"], READ),
        rule(GROUP, [each.plural for each in POLICIES], READ),
        *(
            rule(group, [plural], READ)
            for group, plural in sorted({(each.group, each.plural) for each in looked_up})
        ),
        *of_definitions([SCALED_OBJECT]),
    ]


def audit(audited: Iterable[Resource]) -> list[PolicyRule]:
    """The audit's rules: list what policies judge, and write reports."""
    listed: Rights = {}
    for resource in (*audited, NAMESPACES, LIMIT_RANGES):
        grant(listed, resource, ["list"])
    write = ("create", "delete", "get", "list", "patch")
    return [
        *rules_of(listed),
        rule("admissionregistration.k8s.io", KUBERNETES_POLICIES, ["list", "watch"]),
        rule("openreports.io", ["reports", "clusterreports"], write),
        rule("wgpolicyk8s.io", ["policyreports", "clusterpolicyreports"], write),
    ]


def conversion(crds: Sequence[str]) -> list[PolicyRule]:
    """The rules for setting `conversion` in these CRDs and no others."""
    set_stanza = rule(
        "apiextensions.k8s.io", ["customresourcedefinitions"], ["list", "patch", "watch"]
    )
    return [set_stanza | {"resourceNames": list(crds)}]


def people(kinds: Iterable[PlannedKind[Any]]) -> dict[str, list[PolicyRule]]:
    """The rules that the roles view, edit and admin get for policy objects and for the kinds.

    Tenants may restrict and exempt in their own namespace; cluster policies belong to the platform team.
    """
    of_resources = {(each.plural, each.group): of_users_of_policies(each) for each in POLICIES}
    for kind in kinds:
        of_resources[kind.resource.plural, kind.resource.group] = of_users(kind)
    return {
        role: [rules[role] for _, rules in sorted(of_resources.items()) if role in rules]
        for role in ("view", "edit", "admin")
    }


def of_users_of_policies(resource: Resource) -> dict[str, PolicyRule]:
    """The rights of the roles on policy objects."""
    view = {"view": rule(GROUP, [resource.plural], READ)}
    return view | ({"admin": rule(GROUP, [resource.plural], EDIT)} if resource.namespaced else {})


def render(
    kinds: Sequence[PlannedKind[Any]],
    looked_up: Iterable[Resource] = (),
    audited: Iterable[Resource] = (),
) -> str:
    """All rules as YAML, the file from which the chart builds its roles."""
    rules = {
        "controller": controller(kinds),
        "shared": controller(()),
        "kinds": {
            kind.name: [*rules_of(of_kinds([kind])), *of_definitions(kind.optional)]
            for kind in kinds
        },
        "conversion": conversion(of_several_versions()),
        "webhook": webhook(looked_up),
        "audit": audit(audited),
    }
    return HEADER + yaml.safe_dump({**rules, **people(kinds)}, sort_keys=False)
