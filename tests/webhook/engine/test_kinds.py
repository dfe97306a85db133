"""The table of kinds."""

import pytest

from webhook.engine.kinds import KINDS, Kind, add_pod_kind, resource_of, targets

VOTES = "voting.schoolofdevops.com"


def test_kind_names_are_unique():
    """Policies name kinds without groups."""
    names = [kind.kind for kind in KINDS.values()]
    assert len(set(names)) == len(names)


def test_gatewrights_kinds_are_in_the_table():
    """They have their container path and scale; of several versions, only the stored one is in the table."""
    assert KINDS["example.com", "WebApp"] == Kind(
        "example.com", "WebApp", "webapps", container="spec", scales=True, is_read=True
    )
    assert KINDS["example.com", "Widget"] == Kind(
        "example.com", "Widget", "widgets", scales=True, is_read=True
    )
    assert KINDS[VOTES, "VoteConfig"] == Kind(VOTES, "VoteConfig", "voteconfigs", versions=("v1",))
    found = KINDS["gatewright.io", "ClusterAdmissionPolicy"]
    assert (found.plural, found.versions, found.namespaced) == (
        "clusteradmissionpolicies",
        ("v1alpha1",),
        False,
    )


def test_a_policy_can_name_kinds():
    """Each name yields one kind, in the order of the table."""
    found = targets(("WebApp", "Pod"), ("CREATE",))
    assert [target.keys for target in found] == [
        (("example.com", "webapps", "", "CREATE"),),
        (("", "pods", "", "CREATE"),),
    ]


def test_a_subresource_has_its_own_operations():
    """They are CONNECT or UPDATE, whatever the operations of the main resource."""
    found = {
        (target.kind.kind, target.subresource): target.operations
        for target in targets("pods", ("CREATE", "DELETE"))
    }
    assert found["Pod", ""] == ("CREATE", "DELETE")
    assert found["Pod", "ephemeralcontainers"] == found["Pod", "resize"] == ("UPDATE",)
    assert [each.keys for each in targets("exec", ("CREATE",))] == [
        (("", "pods", "exec", "CONNECT"),),
        (("", "pods", "attach", "CONNECT"),),
    ]


def test_a_custom_kind_is_named_in_full():
    """A policy may judge kinds that are not in the table."""
    other = Kind("kafka.io", "Topic", "topics")
    assert [target.kind for target in targets((other, "Pod"), ("CREATE",))] == [
        other,
        KINDS["", "Pod"],
    ]


def test_sets_and_kinds_can_be_combined():
    """The kinds with pods, and one more."""
    found = targets(("pods", "ServiceAccount"), ("CREATE",))
    assert found == (*targets("pods", ("CREATE",)), *targets(("ServiceAccount",), ("CREATE",)))


def test_the_namespaced_kinds():
    """Cluster-scoped kinds are not among them, nor policy objects, which could block their own repair."""
    found, everything = (targets(name, ("CREATE",)) for name in ("namespaced", "all"))
    assert found == tuple(each for each in everything if each.kind.namespaced)
    assert not {"ClusterRole", "AdmissionPolicy"} & {each.kind.kind for each in found}


def test_an_unknown_kind_is_rejected():
    """A policy that never runs is a mistake."""
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
    """A kind outside the table is named by the API's convention."""
    assert resource_of(group, kind) == resource


@pytest.mark.parametrize(
    "text",
    [
        "rollouts.argoproj.io",
        "rollouts.argoproj.io/v1alpha1/Rollout",
        "rollouts/v1/Rollout=spec",
        "a.b/v1/C=template",
    ],
)
def test_an_incomplete_kind_is_rejected(text):
    """Group, version, kind and the path of the pod's spec are required."""
    with pytest.raises(
        ValueError,
        match=r"^\".*\" is not of the form GROUP/VERSION/KIND=PATH\.OF\.THE\.PODS\.spec; write a list as LIST\[\]$",
    ):
        add_pod_kind(text)
