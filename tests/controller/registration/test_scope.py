"""A webhook is called in the namespaces where a policy can apply, and in no others."""

import re
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from config.api.match import MatchSpec
from controller.registration import grouping
from controller.registration.configurations import (
    VALIDATING,
    Service,
    WebhookClientConfig,
    registration,
)
from tests.controller.registration.sending import Sent, webhooks_for
from webhook.engine import BoundPolicy, Engine, Params, PlannedChildren, Planner, Planners, Policy
from webhook.engine.kinds import KINDS, Kind, Target
from webhook.engine.match import compile_match
from webhook.engine.request import NAMESPACE_LABELS, Attributes, Request
from webhook.policy_sets.catalogue import catalogue
from webhook.policy_sets.policy_set import in_force
from webhook.server.policy_files import policy_set_of

ADDRESS = WebhookClientConfig(Service("gatewright-system", "gatewright-webhook"), b"PEM")
DEPLOYMENT, CONFIG_MAP, NAMESPACE, ROLE = (
    KINDS["apps", "Deployment"],
    KINDS["", "ConfigMap"],
    KINDS["", "Namespace"],
    KINDS["rbac.authorization.k8s.io", "ClusterRole"],
)
PRODUCTION = {
    "any": [{"namespaces": ["production"]}, {"namespaceSelector": {"matchLabels": {"env": "prod"}}}]
}
EXCLUDED = ["gatewright-system", "kube-node-lease", "kube-system"]
NOT_EXCLUDED = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": EXCLUDED}


def bound(
    match: dict[str, Any] | None = None,
    kinds: Any = ("Deployment",),
    name: str = "a",
    **fields: Any,
) -> BoundPolicy:
    """Return a policy in force that judges some kinds, selected by `match`."""
    policy = Policy("a", Params, kinds=kinds, validate=lambda request, params: iter(()))
    compiled = compile_match(MatchSpec.model_validate(match or {}))
    return BoundPolicy(name, policy, Params(), compiled, frozenset({"Deny"}), **fields)


def webhooks(*policies: BoundPolicy, planners: Planners = Planners()) -> list[dict[str, Any]]:  # noqa: B008
    """Return the validating webhooks for some policies."""
    found = registration(Engine(policies, planners), ["gatewright-system"])
    return found.webhooks(VALIDATING, ADDRESS)


def said(*policies: BoundPolicy) -> list[tuple[Any, ...]]:
    """Return selector, conditions and resources of each webhook."""
    return [
        (
            [
                tuple(requirement.values())
                for requirement in webhook["namespaceSelector"]["matchExpressions"]
            ],
            [condition["expression"] for condition in webhook.get("matchConditions", ())],
            sorted(resource for rule in webhook["rules"] for resource in rule["resources"]),
        )
        for webhook in webhooks(*policies)
    ]


NAME = "kubernetes.io/metadata.name"
OPEN = (NAME, "NotIn", EXCLUDED)


@pytest.mark.parametrize(
    ("policies", "expected"),
    [
        pytest.param([bound()], [([OPEN], [], ["deployments"])], id="no match: all namespaces"),
        pytest.param(
            [bound({"any": [{"namespaces": ["shop", "production"]}]})],
            [([(NAME, "In", ["production", "shop"])], [], ["deployments"])],
            id="names",
        ),
        pytest.param(
            [
                bound({"any": [{"namespaces": ["production"]}]}),
                bound({"any": [{"namespaces": ["shop"]}]}),
            ],
            [([(NAME, "In", ["production", "shop"])], [], ["deployments"])],
            id="names of two policies: one webhook",
        ),
        pytest.param(
            [bound(PRODUCTION)],
            [
                ([(NAME, "In", ["production"])], [], ["deployments"]),
                (
                    [("env", "In", ["prod"]), (NAME, "NotIn", [*EXCLUDED, "production"])],
                    [],
                    ["deployments"],
                ),
            ],
            id="names or labels: two webhooks that share no namespace",
        ),
        pytest.param(
            [bound({"any": [{"namespaces": ["shop-*", "production"]}]})],
            [
                (
                    [OPEN],
                    [
                        '!has(request.namespace) || (request.namespace in ["production"] || request.namespace.matches("^(shop-.*)$"))'
                    ],
                    ["deployments"],
                )
            ],
            id="globs: a match condition",
        ),
        pytest.param(
            [
                bound(
                    {
                        "any": [
                            {
                                "namespaces": ["shop-*"],
                                "namespaceSelector": {
                                    "matchExpressions": [{"key": "env", "operator": "Exists"}]
                                },
                            }
                        ]
                    }
                )
            ],
            [
                (
                    [("env", "Exists"), OPEN],
                    ['!has(request.namespace) || (request.namespace.matches("^(shop-.*)$"))'],
                    ["deployments"],
                )
            ],
            id="all parts of a clause hold",
        ),
        pytest.param(
            [bound({"any": [{"objectSelector": {"matchLabels": {"a": "b"}}, "names": ["web"]}]})],
            [([OPEN], [], ["deployments"])],
            id="what the object's author chooses never narrows",
        ),
        pytest.param(
            [
                bound(
                    {
                        "exclude": {
                            "users": ["admin"],
                            "groups": ["ops-*"],
                            "serviceAccounts": ["ci/*"],
                        }
                    }
                )
            ],
            [
                (
                    [OPEN],
                    [
                        '!(request.userInfo.username in ["admin"] || request.userInfo.username.matches("^(system:serviceaccount:ci:.*)$"))',
                        '!(has(request.userInfo.groups) && request.userInfo.groups.exists(group, group.matches("^(ops-.*)$")))',
                    ],
                    ["deployments"],
                )
            ],
            id="users that no policy looks at",
        ),
        pytest.param(
            [
                bound({"exclude": {"users": ["admin", "ci"]}}),
                bound({"exclude": {"users": ["admin"]}}),
            ],
            [([OPEN], ['!(request.userInfo.username in ["admin"])'], ["deployments"])],
            id="users that only some policies look at are sent",
        ),
        pytest.param(
            [
                bound(namespace="team-a"),
                bound({"any": [{"namespaces": ["team-b"]}]}, namespace="team-c"),
            ],
            [([(NAME, "In", ["team-a"])], [], ["deployments"])],
            id="a tenant's policy: its namespace",
        ),
        pytest.param(
            [bound({"any": [{"namespaces": ["production"]}]}), bound(kinds=("Pod",))],
            [
                ([(NAME, "In", ["production"])], [], ["deployments"]),
                ([OPEN], [], ["pods"]),
            ],
            id="each resource has its own namespaces",
        ),
        pytest.param(
            [
                bound(
                    {
                        "any": [
                            {"namespaces": ["production"], "kinds": ["Pod"]},
                            {"operations": ["DELETE"]},
                        ]
                    }
                )
            ],
            [],
            id="kinds and operations that the policy does not judge",
        ),
        pytest.param(
            [
                bound(PRODUCTION, kinds=("ClusterRole",)),
                bound({"any": [{"namespaces": ["kube-system"]}]}),
            ],
            [],
            id="cluster-scoped objects are in no namespace, and kube-system is never sent",
        ),
    ],
)
def test_namespaces_follow_from_the_policies(policies, expected):
    """Names, labels, globs and exclusions of `match`, and the tenant's namespace."""
    assert said(*policies) == expected


def test_the_webhooks_have_names_in_a_fixed_order():
    """The webhook for all namespaces is the last one; those that fail open have separate names."""
    found = webhooks(
        bound(PRODUCTION), bound(kinds=("Pod",)), bound(kinds=("Job",), fails_closed=False)
    )
    assert [each["name"] for each in found] == [
        "validate.gatewright.io",
        "validate-2.gatewright.io",
        "validate-3.gatewright.io",
        "validate-ignore.gatewright.io",
    ]


def test_beyond_the_limit_those_groups_share_webhooks_that_add_the_fewest_requests(monkeypatch):
    """Kinds with a namespace each are merged; kinds that are sent from everywhere widen none."""
    monkeypatch.setattr(grouping, "MAX_WEBHOOKS", 3)
    kinds = ("Deployment", "StatefulSet", "DaemonSet", "Job")
    policies = [bound({"any": [{"namespaces": [kind.lower()]}]}, kinds=(kind,)) for kind in kinds]
    found = said(*policies, bound(kinds=("Pod",)))
    assert [selector for selector, _, _ in found][-1] == [OPEN]
    assert [resources for _, _, resources in found][-1] == ["pods"]
    named = [selector[0][2] for selector, _, _ in found[:-1]]
    assert len(named) == 2
    assert sorted(name for names in named for name in names) == sorted(map(str.lower, kinds))


def by_label(key: str, **fields: Any) -> BoundPolicy:
    """Return a policy in the namespaces with a label."""
    expressions = [{"key": key, "operator": "Exists"}]
    return bound({"any": [{"namespaceSelector": {"matchExpressions": expressions}}]}, **fields)


def test_namespaces_by_many_labels_stay_narrow():
    """A webhook for each of 20 labels; a namespace without any of them sends nothing."""
    found = webhooks(*(by_label(f"team-{each}") for each in range(20)))
    assert len(found) == 20
    for labels, number in (({}, 0), ({"team-7": "x"}, 1), ({"team-3": "x", "team-19": "y"}, 1)):
        assert len(webhooks_for(Sent(DEPLOYMENT, "shop", labels), found)) == number


def test_more_labels_than_webhooks_widen_their_own_kinds_only():
    """The policies that ask for it are named; other kinds stay in their namespaces."""
    labels = [by_label(f"team-{each}") for each in range(grouping.MAX_WEBHOOKS + 1)]
    pods = bound({"any": [{"namespaces": ["production"]}]}, kinds=("Pod",), name="pods")
    assert said(*labels, pods) == [
        ([(NAME, "In", ["production"])], [], ["pods"]),
        ([OPEN], [], ["deployments"]),
    ]
    found = registration(Engine([*labels, pods]), [])
    assert found.widened == {(None, "a")}
    assert not registration(Engine([*labels[:20], pods]), []).widened


def test_more_labels_than_webhooks_keep_a_label_that_all_have():
    """Each clause also asks for env=prod: what cannot be said is left out, and this stays."""
    clauses = [
        {"namespaceSelector": {"matchLabels": {"env": "prod", f"team-{number}": "x"}}}
        for number in range(grouping.MAX_WEBHOOKS + 1)
    ]
    assert said(bound({"any": clauses})) == [([("env", "In", ["prod"]), OPEN], [], ["deployments"])]


def test_many_values_of_a_label_beside_another_are_one_webhook():
    """Scopes that differ in one label only are merged."""
    clauses = [
        {"namespaceSelector": {"matchLabels": {"env": "prod", "team": f"t{number}"}}}
        for number in range(100)
    ]
    ((selector, _, _),) = said(bound({"any": clauses}))
    assert selector == [
        ("env", "In", ["prod"]),
        OPEN,
        ("team", "In", sorted(f"t{each}" for each in range(100))),
    ]


def test_globs_beyond_the_api_limit_are_shortened():
    """Ten thousand globs need more text than an expression may have: a prefix of each stays."""
    names = [f"group{each:05}-*" for each in range(10_000)]
    (webhook,) = webhooks(bound({"any": [{"namespaces": names}]}))
    (condition,) = webhook["matchConditions"]
    assert len(condition["expression"]) < 100_000
    pattern = condition["expression"].split('"')[1]
    assert re.fullmatch(pattern, "group01234-a")
    assert not re.fullmatch(pattern, "group1-a")


def label_pairs(number: int) -> dict[str, Any]:
    """Return clauses that overlap, each with two labels of its own."""
    labels = [[f"a-{each}", f"b-{each}"] for each in range(number)]
    return {
        "any": [
            {
                "namespaceSelector": {
                    "matchExpressions": [{"key": key, "operator": "Exists"} for key in pair]
                }
            }
            for pair in labels
        ]
    }


def test_overlapping_labels_are_widened_before_they_are_split():
    """To split 50 clauses of two labels each into disjoint ones would take 2^50 webhooks."""
    assert said(bound(label_pairs(50))) == [([OPEN], [], ["deployments"])]


def test_labels_in_the_policy_of_a_tenant_widen_no_other_namespace():
    """A tenant's policy is called for its whole namespace, however many clauses it has."""
    policy = bound(label_pairs(50), namespace="team-a")
    assert said(policy) == [([(NAME, "In", ["team-a"])], [], ["deployments"])]


WIDGET = Kind("example.com", "Gadget", "gadgets")


def test_a_planned_parent_is_sent_where_its_children_are_judged():
    """It is sent even if the policy excludes the user who creates the parent: the controller creates the children."""
    planners = Planners([Planner(WIDGET, (DEPLOYMENT,), lambda *_: PlannedChildren())])
    policy = bound({"any": [{"namespaces": ["production"]}], "exclude": {"users": ["admin"]}})
    found = webhooks(policy, planners=planners)
    for user, namespace, sent in (
        ("admin", "production", 1),
        ("x", "production", 1),
        ("x", "staging", 0),
    ):
        assert len(webhooks_for(Sent(WIDGET, namespace, user=user), found)) == sent
    assert webhooks_for(Sent(DEPLOYMENT, "production", user="admin"), found) == []


NAMESPACES = ("production", "shop-1", "shop", "kube-system")
LABELS = ({}, {"env": "prod"}, {"env": "dev", "team": "a"}, {"env": "prod", "team": "b"})
PATTERNS = st.sampled_from(["production", "shop-1", "shop-*", "s?op", "kube-*"])
EXACT = st.sampled_from([{"env": "prod"}, {"team": "a"}])
REQUIREMENTS = st.sampled_from(
    [
        {"key": "env", "operator": "In", "values": ["prod", "dev"]},
        {"key": "env", "operator": "NotIn", "values": ["dev"]},
        {"key": "team", "operator": "NotIn", "values": ["a"]},
        {"key": "team", "operator": "Exists"},
        {"key": "team", "operator": "DoesNotExist"},
        {"key": NAME, "operator": "NotIn", "values": ["shop"]},
        {"key": NAME, "operator": "In", "values": ["shop", "production"]},
    ]
)
SELECTORS = st.fixed_dictionaries(
    {}, optional={"matchLabels": EXACT, "matchExpressions": st.lists(REQUIREMENTS, max_size=2)}
)
CLAUSES = st.one_of(
    st.builds(lambda names: {"namespaces": names}, st.lists(PATTERNS, min_size=1, max_size=2)),
    st.builds(lambda selector: {"namespaceSelector": selector}, SELECTORS),
    st.fixed_dictionaries(
        {"namespaces": st.lists(PATTERNS, min_size=1, max_size=2), "namespaceSelector": SELECTORS}
    ),
    st.fixed_dictionaries(
        {"namespaceSelector": SELECTORS},
        optional={
            "objectSelector": SELECTORS,
            "kinds": st.just(["Namespace"]),
            "operations": st.just(["CREATE"]),
        },
    ),
)
EXCLUSIONS = st.fixed_dictionaries(
    {},
    optional={
        "users": st.lists(st.sampled_from(["admin", "a*"]), max_size=2),
        "groups": st.just(["ops", "sys*"]),
        "serviceAccounts": st.just(["ci/*"]),
    },
)
MATCHES = st.one_of(
    st.builds(lambda clauses: {"any": clauses}, st.lists(CLAUSES, min_size=1, max_size=3)),
    st.fixed_dictionaries({"any": st.lists(CLAUSES, max_size=1), "exclude": EXCLUSIONS}),
)
POLICIES = st.builds(
    bound,
    MATCHES,
    st.sampled_from(
        [
            ("Deployment",),
            ("Deployment", "Namespace"),
            ("Namespace", "ClusterRole"),
            ("ClusterRole",),
        ]
    ),
    namespace=st.sampled_from([None, None, None, "shop-1"]),
)
TENANTS = st.builds(
    bound,
    MATCHES,
    st.sampled_from([("Deployment",), ("ConfigMap",), ("Deployment", "Namespace")]),
    namespace=st.sampled_from(["shop-1", "production"]),
)
CALLERS = (
    ("admin", ()),
    ("system:serviceaccount:ci:bot", ("system:authenticated",)),
    ("somebody", ("dev",)),
)
REQUESTS = [
    Sent(kind, namespace, labels, operation=operation, user=user, groups=groups)
    for kind, namespace, labels, operation, (user, groups) in product(
        (DEPLOYMENT, CONFIG_MAP, NAMESPACE), NAMESPACES, LABELS, ("CREATE", "UPDATE"), CALLERS
    )
] + [Sent(ROLE, user=user, groups=groups) for user, groups in CALLERS]


def reviewed(sent: Sent) -> Request:
    """Return a request as the engine sees it."""
    is_namespace = sent.kind is NAMESPACE
    name = sent.namespace if is_namespace else "it"
    attributes = Attributes(
        "uid",
        sent.operation,
        sent.kind.group,
        "v1",
        sent.kind.kind,
        sent.kind.group,
        sent.kind.plural,
        name=name,
        namespace=sent.namespace,
        username=sent.user,
        groups=sent.groups,
    )
    labels = {**sent.labels, NAME: sent.namespace}
    return Request(
        attributes, {"metadata": {"name": name, "labels": labels}}, None, {NAMESPACE_LABELS: labels}
    )


def applies(policy: BoundPolicy, sent: Sent) -> bool:
    """Return whether the engine asks a policy about a request."""
    if sent.kind.kind not in {target.kind.kind for target in policy.policy.targets}:
        return False
    if policy.namespace is not None and (
        not sent.kind.namespaced or policy.namespace != sent.namespace
    ):
        return False
    request = reviewed(sent)
    about = request.attributes
    narrowed = policy.match.narrow(
        Target(sent.kind, about.subresource, (about.operation,)), about.namespace
    )
    return narrowed is not None and narrowed.selects(request)


@pytest.mark.long
@settings(max_examples=200, deadline=None)
@given(st.lists(POLICIES, min_size=1, max_size=3))
def test_no_request_that_a_policy_applies_to_is_left_out(policies):
    """Each is sent to exactly one webhook; no request is sent to two."""
    found = webhooks(*policies)
    for asked in REQUESTS:
        names = webhooks_for(asked, found)
        assert len(names) <= 1
        assert (
            names
            or asked.namespace in EXCLUDED
            or not any(applies(policy, asked) for policy in policies)
        )


@pytest.mark.long
@settings(max_examples=200, deadline=None)
@given(st.lists(POLICIES, max_size=3), st.lists(TENANTS, max_size=3))
def test_tenants_change_nothing_about_other_namespaces(policies, tenants):
    """What is sent from there is the same; in their own namespaces nothing is left out."""
    platform = [each for each in policies if each.namespace is None]
    alone, together = webhooks(*platform), webhooks(*platform, *tenants)
    own = {each.namespace for each in tenants}
    for asked in REQUESTS:
        names = webhooks_for(asked, together)
        assert len(names) <= 1
        if asked.namespace not in own or asked.kind in (NAMESPACE, ROLE):
            assert bool(names) == bool(webhooks_for(asked, alone))
        elif not names and asked.namespace not in EXCLUDED:
            assert not any(applies(policy, asked) for policy in (*platform, *tenants))


TENANT_KINDS = ("ConfigMap", "Secret", "Service", "ServiceAccount", "Deployment", "Pod")


@pytest.mark.parametrize(
    "number",
    [4, 40, pytest.param(400, marks=pytest.mark.long), pytest.param(4000, marks=pytest.mark.long)],
)
@pytest.mark.parametrize("preset", ["production", "best-practices"])
def test_tenants_beside_a_preset_send_what_is_judged_and_nothing_else(number, preset):
    """Each of many tenants has a policy about one kind, with users of its own."""
    policies = policy_set_of([Path(f"config/policies/{preset}.yaml")], catalogue())
    platform = in_force(policies, catalogue(), "gatewright-system")
    tenants = [
        bound(
            {"exclude": {"users": [f"user-{index}"]}},
            kinds=(TENANT_KINDS[index % len(TENANT_KINDS)],),
            name="mine",
            namespace=f"tenant-{index}",
        )
        for index in range(number)
    ]
    engine = Engine([*platform, *tenants])
    computed = registration(engine, ["gatewright-system"])
    found, alone = (
        registered.webhooks(VALIDATING, ADDRESS)
        for registered in (computed, registration(Engine(platform), ["gatewright-system"]))
    )
    assert not computed.widened
    assert len(found) <= len(alone) + 2
    places = [("shop", {}), ("production", {}), ("shop-2", {"environment": "production"})]
    places += [(f"tenant-{each}", {}) for each in range(min(number, 12))]
    places += [("tenant-1", {"environment": "production"})]
    for kind, (namespace, labels) in product(TENANT_KINDS, places):
        sent = Sent(next(each for each in KINDS.values() if each.kind == kind), namespace, labels)
        names = webhooks_for(sent, found)
        judged = any(applies(policy, sent) for policy in engine.policies if policy.policy.validate)
        assert len(names) == int(judged)
