"""The table of kinds."""

import pytest

from webhook.engine.kinds import KINDS, Kind, add_pod_kind, resource_of, targets

VOTES = "voting.schoolofdevops.com"


def test_kinds_are_named_once():
    """A policy names kinds without their groups, so a name means one kind."""
    names = [kind.kind for kind in KINDS.values()]
    assert len(set(names)) == len(names)


def test_our_kinds_are_in_the_table_by_their_definitions():
    """With what is one container and what scales; of several versions only the one that is stored."""
    assert KINDS["example.com", "WebApp"] == Kind("example.com", "WebApp", "webapps", container="spec", scales=True)
    assert KINDS["example.com", "Widget"] == Kind("example.com", "Widget", "widgets", scales=True)
    assert KINDS[VOTES, "VoteConfig"] == Kind(VOTES, "VoteConfig", "voteconfigs", versions=("v1",))
    found = KINDS["gatewright.io", "ClusterAdmissionPolicy"]
    assert (found.plural, found.versions, found.namespaced) == ("clusteradmissionpolicies", ("v1alpha1",), False)


def test_a_policy_can_name_kinds():
    """Each name stands for one kind, in the order of the table."""
    found = targets(("WebApp", "Pod"), ("CREATE",))
    assert [target.keys for target in found] == [
        (("example.com", "webapps", "", "CREATE"),),
        (("", "pods", "", "CREATE"),),
    ]


def test_a_subresource_has_its_own_operations():
    """What one connects to is CONNECT, what one updates is UPDATE, whatever is asked for whole objects."""
    found = {(each.kind.kind, each.subresource): each.operations for each in targets("pods", ("CREATE", "DELETE"))}
    assert found["Pod", ""] == ("CREATE", "DELETE")
    assert found["Pod", "ephemeralcontainers"] == found["Pod", "resize"] == ("UPDATE",)
    assert [each.keys for each in targets("exec", ("CREATE",))] == [
        (("", "pods", "exec", "CONNECT"),),
        (("", "pods", "attach", "CONNECT"),),
    ]


def test_a_kind_of_somebody_else_can_be_named_in_full():
    """A policy may look at what the table does not know."""
    other = Kind("kafka.io", "Topic", "topics")
    assert [target.kind for target in targets((other, "Pod"), ("CREATE",))] == [other, KINDS["", "Pod"]]


def test_sets_and_kinds_can_be_named_together():
    """What makes pods, and one kind more."""
    found = targets(("pods", "ServiceAccount"), ("CREATE",))
    assert found == (*targets("pods", ("CREATE",)), *targets(("ServiceAccount",), ("CREATE",)))


def test_the_namespaced_are_those_of_all_that_live_in_a_namespace():
    """Neither what is outside of any, nor the policies themselves, which could lock everybody out."""
    found, everything = (targets(name, ("CREATE",)) for name in ("namespaced", "all"))
    assert found == tuple(each for each in everything if each.kind.namespaced)
    assert not {"ClusterRole", "AdmissionPolicy"} & {each.kind.kind for each in found}


def test_a_kind_that_is_not_known_is_refused():
    """A policy that would never be asked is a mistake."""
    with pytest.raises(LookupError):
        targets(("Pod", "Pods"), ("CREATE",))


@pytest.mark.parametrize(
    ("group", "kind", "resource"),
    [
        ("", "Pod", "pods"),
        ("apps", "Deployment", "deployments"),
        ("", "ConfigMap", "configmaps"),
        ("x.io", "Policy", "policies"),
        ("x.io", "Class", "classes"),
        ("gateway.networking.k8s.io", "Gateway", "gateways"),
    ],
)
def test_resources_have_names(group, kind, resource):
    """A kind that is not in the table is named as the API's convention has it."""
    assert resource_of(group, kind) == resource


@pytest.mark.parametrize(
    "text",
    ["rollouts.argoproj.io", "rollouts.argoproj.io/v1alpha1/Rollout", "rollouts/v1/Rollout=spec", "a.b/v1/C=template"],
)
def test_a_kind_that_is_half_told_is_refused(text):
    """Group, version, kind and the path of the pod's spec are all needed."""
    with pytest.raises(
        ValueError, match=r"^\".*\" is not of the form PLURAL\.GROUP/VERSION/KIND=PATH\.OF\.THE\.PODS\.spec$"
    ):
        add_pod_kind(text)
