"""Matching: globs, selectors, kinds, and the look-ups they need."""

import pytest

from config.api.match import LabelSelector, MatchSpec
from tests.webhook.asking import ask, in_force
from webhook.engine import NAMESPACE, NAMESPACE_LABELS, Engine, NotLookedUpError, Policy
from webhook.engine.kinds import KINDS, Target
from webhook.engine.match import compile_match, compile_selector, may_select, meets
from webhook.engine.request import PARENT
from webhook.harness.bases import kinds_by_name


def match(*clauses):
    """Compile a match as written in a policy object."""
    return compile_match(MatchSpec.model_validate({"any": list(clauses)}))


def selects(match, request):
    """Decide as the engine does: first by target and namespace, then by the rest."""
    kind = next(each for each in KINDS.values() if each.plural == request.attributes.resource)
    about = request.attributes
    narrowed = match.narrow(Target(kind, about.subresource, (about.operation,)), about.namespace)
    return narrowed is not None and narrowed.selects(request)


@pytest.mark.parametrize(
    ("globs", "namespace", "selected"),
    [
        (["production"], "production", True),
        (["production"], "production-2", False),
        (["production"], "my-production", False),
        (["prod-*"], "prod-eu", True),
        (["prod-*"], "prod-", True),
        (["prod-*"], "prod", False),
        (["team-?"], "team-a", True),
        (["team-?"], "team-ab", False),
        (["a", "b*"], "bc", True),
        (["*"], "anything", True),
        (["*"], "", False),
    ],
)
def test_namespaces_are_matched_by_globs(globs, namespace, selected):
    """A glob matches the whole name, and never an object without a namespace."""
    assert selects(match({"namespaces": globs}), ask({}, namespace=namespace)) is selected


@pytest.mark.parametrize(
    ("selector", "labels", "selected"),
    [
        ({}, {}, True),
        ({"matchLabels": {"a": "1"}}, {"a": "1", "b": "2"}, True),
        ({"matchLabels": {"a": "1"}}, {"a": "2"}, False),
        ({"matchLabels": {"a": "1", "b": "2"}}, {"a": "1"}, False),
        (
            {"matchExpressions": [{"key": "a", "operator": "In", "values": ["1", "2"]}]},
            {"a": "2"},
            True,
        ),
        (
            {"matchExpressions": [{"key": "a", "operator": "In", "values": ["1"]}]},
            {"a": "3"},
            False,
        ),
        ({"matchExpressions": [{"key": "a", "operator": "In", "values": ["1"]}]}, {}, False),
        (
            {"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["1"]}]},
            {"a": "2"},
            True,
        ),
        (
            {"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["1"]}]},
            {"a": "1"},
            False,
        ),
        ({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["1"]}]}, {}, True),
        ({"matchExpressions": [{"key": "a", "operator": "Exists"}]}, {"a": ""}, True),
        ({"matchExpressions": [{"key": "a", "operator": "Exists"}]}, {"b": ""}, False),
        ({"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}, {}, True),
        ({"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}, {"a": ""}, False),
        (
            {"matchLabels": {"a": "1"}, "matchExpressions": [{"key": "b", "operator": "Exists"}]},
            {"a": "1"},
            False,
        ),
    ],
)
def test_a_selector_selects_labels(selector, labels, selected):
    """All labels and all expressions must match, like in the API's own selectors."""
    assert compile_selector(LabelSelector.model_validate(selector))(labels) is selected


SELECTOR = {"namespaceSelector": {"matchLabels": {"environment": "production"}}}


def test_labels_are_those_of_the_namespace():
    """A namespaceSelector uses the labels looked up for the request."""
    looked_up = {NAMESPACE_LABELS: {"environment": "production"}}
    assert selects(match(SELECTOR), ask({}, looked_up=looked_up))
    assert not selects(match(SELECTOR), ask({}, looked_up={NAMESPACE_LABELS: {}}))


def test_missing_labels_are_an_error():
    """An unknown namespace is not one without labels."""
    with pytest.raises(NotLookedUpError, match=r"^namespace_labels$"):
        selects(match(SELECTOR), ask({}))


def test_a_matching_name_needs_no_labels():
    """Clauses without look-ups are evaluated first, in any order."""
    for other in ({"namespaces": ["shop"]}, {"names": ["it"]}):
        assert selects(match(SELECTOR, other), ask({}))
        with pytest.raises(NotLookedUpError):
            selects(match(SELECTOR, other), ask({}, namespace="other", name="another"))


def test_a_name_that_does_not_match_needs_no_labels():
    """Within a clause, the name is tested before the labels."""
    assert not selects(match(SELECTOR | {"namespaces": ["shop"]}), ask({}, namespace="other"))


def test_cluster_scoped_objects_match_no_namespace_clause():
    """No labels are needed to decide it."""
    request = ask({}, namespace="")
    assert not selects(match({"namespaces": ["*"]}), request)
    assert not selects(match({"namespaceSelector": {}}), request)
    assert selects(match(), request)
    assert selects(match({}), request)


@pytest.mark.parametrize(
    ("clauses", "kind", "left"),
    [
        ([], "Pod", 0),
        ([{"kinds": ["Deployment"]}], "Deployment", 1),
        ([{"kinds": ["Deployment"]}], "Pod", None),
        ([{"kinds": ["Deployment"]}, {"namespaces": ["a"]}], "Pod", 1),
        ([{"kinds": ["Deployment"]}, {"namespaces": ["a"]}], "Deployment", 2),
        ([{"namespaces": ["*"]}, {"namespaceSelector": {}}], "ClusterRole", None),
        ([{"namespaces": ["a"]}, {"names": ["a"]}], "ClusterRole", 1),
        ([{"namespaces": ["a"]}], "Namespace", 1),
        ([{"podSelector": {}}], "Deployment", 1),
        ([{"podSelector": {}}], "Service", None),
    ],
)
def test_kinds_are_decided_in_advance(clauses, kind, left):
    """For a kind only the clauses that can match it remain; without any, the policy is not run."""
    about = Target(kinds_by_name()[kind])
    found = match(*clauses)
    assert found.select_targets([about]) == ([] if left is None else [about])
    assert sum(may_select(clause, about) for clause in found.clauses) == (left or 0)


def test_only_a_selector_needs_labels():
    """The look-ups are known without a request."""
    assert match(SELECTOR).needs() == {NAMESPACE_LABELS}
    assert match({"namespaces": ["a"]}, {"kinds": ["Pod"]}).needs() == frozenset()


@pytest.mark.parametrize("selector", ["objectSelector", "podSelector"])
def test_labels_of_a_parent_are_looked_up_for_its_subresources_only(selector):
    """An object has its own labels, and so has a pod that /ephemeralcontainers changes."""
    selecting = match({selector: {"matchLabels": {"a": "b"}}})
    assert [selecting.needs(each) for each in ("", "ephemeralcontainers", "resize", "status")] == [
        frozenset()
    ] * 4
    assert [
        selecting.needs(subresource)
        for subresource in ("scale", "exec", "eviction", "binding", "token")
    ] == [{PARENT}] * 5
    assert match({"namespaces": ["a"]}).needs("scale") == frozenset()


def test_an_unknown_operator_is_met_by_no_labels():
    """A newer API server may have unknown operators."""
    assert not meets({"a": "1"}, "a", "Gt", {"0"})
    assert not meets({}, "a", None, ())


DEPLOYMENT = {
    "metadata": {"labels": {"tier": "web"}, "generateName": "shop-"},
    "spec": {"template": {"metadata": {"labels": {"app": "shop"}}}},
}


@pytest.mark.parametrize(
    ("clause", "asked", "selected"),
    [
        ({"operations": ["CREATE"]}, {}, True),
        ({"operations": ["UPDATE", "DELETE"]}, {}, False),
        ({"operations": ["DELETE"]}, {"operation": "DELETE"}, True),
        ({"subresources": [""]}, {}, True),
        ({"subresources": [""]}, {"subresource": "scale"}, False),
        ({"subresources": ["scale"]}, {"subresource": "scale"}, True),
        ({"names": ["it"]}, {}, True),
        ({"names": ["i*"]}, {}, True),
        ({"names": ["x*"]}, {}, False),
        ({"names": ["shop-*"]}, {"name": ""}, True),
        ({"names": ["shop-"]}, {"name": ""}, False),  # which is not the final name
        ({"names": ["shop-?????"]}, {"name": ""}, True),
        ({"objectSelector": {"matchLabels": {"tier": "web"}}}, {}, True),
        ({"objectSelector": {"matchLabels": {"tier": "db"}}}, {}, False),
        ({"podSelector": {"matchLabels": {"app": "shop"}}}, {}, True),
        ({"podSelector": {"matchLabels": {"tier": "web"}}}, {}, False),
        ({"names": ["it"], "operations": ["DELETE"]}, {}, False),
    ],
)
def test_all_fields_of_a_clause_must_match(clause, asked, selected):
    """Operations, subresources, names and labels of the object or its pods restrict it."""
    assert selects(match(clause), ask(DEPLOYMENT, "Deployment", **asked)) is selected


@pytest.mark.parametrize(
    ("exclude", "selected"),
    [
        ({"users": ["jane"]}, False),
        ({"users": ["j*"]}, False),
        ({"users": ["joe"]}, True),
        ({"users": ["JANE"]}, True),
        ({"groups": ["admins"]}, False),
        ({"groups": ["adm?ns"]}, False),
        ({"groups": ["others"]}, True),
        ({"groups": ["jane"]}, True),
        ({}, True),
    ],
)
def test_excluded_users_never_match(exclude, selected):
    """A policy does not judge their requests, whatever its clauses say."""
    request = ask({}, username="jane", groups=("devs", "admins"))
    spec = MatchSpec.model_validate({"any": [{"namespaces": ["shop"]}], "exclude": exclude})
    assert selects(compile_match(spec), request) is selected


@pytest.mark.parametrize(
    ("account", "username", "selected"),
    [
        ("kube-system/deployer", "system:serviceaccount:kube-system:deployer", False),
        ("kube-system/*", "system:serviceaccount:kube-system:deployer", False),
        ("kube-system/*", "system:serviceaccount:kube-system-2:deployer", True),
        ("*/deployer", "system:serviceaccount:shop:deployer", False),
        ("shop/deployer", "shop:deployer", True),
    ],
)
def test_service_accounts_are_named_by_namespace_and_name(account, username, selected):
    """The full user name is not needed."""
    spec = MatchSpec.model_validate({"exclude": {"serviceAccounts": [account]}})
    assert selects(compile_match(spec), ask({}, username=username)) is selected


def test_excluded_users_are_excluded_for_each_kind():
    """Narrowing a match to one kind keeps the exclusions."""
    spec = MatchSpec.model_validate({"any": [{"kinds": ["Pod"]}], "exclude": {"users": ["jane"]}})
    assert not selects(compile_match(spec), ask({}, username="jane"))


@pytest.mark.parametrize(
    ("labels", "operation", "selected"),
    [
        ({"env": "prod"}, "CREATE", True),
        ({}, "CREATE", False),
        ({}, "UPDATE", False),
        ({"env": "prod"}, "UPDATE", True),
    ],
)
def test_a_namespace_is_selected_by_its_own_labels(labels, operation, selected):
    """These are the new labels, as in the API server."""
    production = match({"namespaceSelector": {"matchLabels": {"env": "prod"}}})
    old = (
        {"metadata": {"name": "shop", "labels": {"env": "lab"}}} if operation == "UPDATE" else None
    )
    about = {"name": "shop", "namespace": "shop", "operation": operation}
    request = ask(
        {"metadata": {"name": "shop", "labels": labels}}, "Namespace", old_object=old, **about
    )
    assert production.selects(request) is selected
    named = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["shop"]}
    assert selects(match({"namespaceSelector": {"matchExpressions": [named]}}), request)
    reading = Policy(
        "any", validate=lambda *_: iter(()), kinds=("Namespace", "Pod"), needs=(NAMESPACE,)
    )
    judge = Engine([in_force(reading, match=production)])
    assert (judge.needs(request.attributes), judge.needs(ask({}).attributes)) == (
        set(),
        {NAMESPACE_LABELS, NAMESPACE},
    )
