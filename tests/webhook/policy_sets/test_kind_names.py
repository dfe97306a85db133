"""A policy can name any kind in the usual notations; a name that can match nothing is an error."""

from typing import Any

import pytest

from config.faults import FaultsError
from webhook.engine.kinds import Kind
from webhook.policy_sets.bound_objects import bind
from webhook.policy_sets.catalogue import catalogue
from webhook.policy_sets.kind_names import IN_FULL, custom_versions, kinds_named


def rules(*kinds: str) -> dict[str, Any]:
    """Return the spec of a policy object with a rule about these kinds."""
    return {"match": {"any": [{"kinds": [*kinds]}]}, "validations": [{"expression": "true"}]}


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("Deployment", ["deployments.apps"]),
        ("apps/v1/Deployment", ["deployments.apps"]),
        ("deployments.apps/v1/Deployment", ["deployments.apps"]),
        ("Node", ["nodes."]),
        ("v1/Node", ["nodes."]),
        ("ResourceQuota", ["resourcequotas."]),
        ("Event", ["events."]),
        ("events.k8s.io/v1/Event", ["events.events.k8s.io"]),
        ("autoscaling/v1/HorizontalPodAutoscaler", ["horizontalpodautoscalers.autoscaling"]),
        ("scheduling.k8s.io/v1/PriorityClass", ["priorityclasses.scheduling.k8s.io"]),
        (
            "priorityclasses.scheduling.k8s.io/v1/PriorityClass",
            ["priorityclasses.scheduling.k8s.io"],
        ),
        ("cert-manager.io/v1/Certificate", ["certificates.cert-manager.io"]),
        ("certificates.cert-manager.io/v1/Certificate", ["certificates.cert-manager.io"]),
        (
            "monitoring.coreos.com/v1/PrometheusRule",
            ["prometheusrules.monitoring.coreos.com"],
        ),
        # a custom group that ends like one of Kubernetes' own
        ("gateway.networking.k8s.io/v1/Gateway", ["gateways.gateway.networking.k8s.io"]),
        (
            "snapshot.storage.k8s.io/v1/VolumeSnapshot",
            ["volumesnapshots.snapshot.storage.k8s.io"],
        ),
        # an irregular plural, or a group that begins like the kind: whichever the cluster has
        (
            "pods.metrics.k8s.io/v1beta1/PodMetrics",
            ["pods.metrics.k8s.io", "podmetricses.pods.metrics.k8s.io"],
        ),
        (
            "people.example.com/v1/Person",
            ["people.example.com", "persons.people.example.com"],
        ),
        (
            "certs.company.io/v1/Certificate",
            ["certs.company.io", "certificates.certs.company.io"],
        ),
    ],
)
def test_a_word_names_kinds(word: str, expected: list[str]) -> None:
    """A kind is named by its name, by apiVersion and name, or with the plural before the group."""
    assert [f"{kind.plural}.{kind.group}" for kind in kinds_named(word)] == expected


def test_a_kind_of_kubernetes_has_its_scope() -> None:
    """A cluster-scoped one has no namespace to select."""
    assert kinds_named("Node") == (Kind("", "Node", "nodes", namespaced=False),)


@pytest.mark.parametrize(
    ("word", "fault"),
    [
        ("Deploymnt", 'unknown kind "Deploymnt"; did you mean "Deployment"?'),
        ("deployments", 'unknown kind "deployments"; did you mean "Deployment"?'),
        ("v1/Deployment", 'unknown kind "v1/Deployment"; did you mean "apps/v1/Deployment"?'),
        (
            "apps/v2/Deployment",
            'unknown version in "apps/v2/Deployment"; did you mean "apps/v1/Deployment"?',
        ),
        ("v1/Nod", 'unknown kind "v1/Nod"; did you mean "Node"?'),
        ("Certificate", f'unknown kind "Certificate"; {IN_FULL}'),
        (
            "networkpolicys.networking.k8s.io/v1/NetworkPolicy",
            'unknown kind "networkpolicys.networking.k8s.io/v1/NetworkPolicy"; '
            'did you mean "networking.k8s.io/v1/NetworkPolicy"?',
        ),
        (
            "ingresses.networking.k8s.io/v1/Ingres",
            'unknown kind "ingresses.networking.k8s.io/v1/Ingres"; did you mean "Ingress"?',
        ),
        ("cert-manager.io/Certificate", f'unknown kind "cert-manager.io/Certificate"; {IN_FULL}'),
        (
            "scheduling.k8s.io/v1/PriorityClas",
            'unknown kind "scheduling.k8s.io/v1/PriorityClas"; did you mean "PriorityClass"?',
        ),
        (
            "Priorityclasses",
            'unknown kind "Priorityclasses"; did you mean "PriorityClass"?',
        ),
    ],
)
def test_a_spelling_that_can_match_nothing_is_an_error(word: str, fault: str) -> None:
    """The policy would silently never apply."""
    spec = {"match": {"any": [{"kinds": [word]}]}, "validations": [{"expression": "true"}]}
    with pytest.raises(FaultsError) as error:
        bind(
            {
                "apiVersion": "gatewright.io/v1alpha1",
                "kind": "ClusterAdmissionPolicy",
                "metadata": {"name": "it"},
                "spec": spec,
            },
            catalogue(),
        )
    assert error.value.faults == (("spec.match.any[0].kinds", fault),)


def test_a_built_in_policy_takes_the_same_spellings() -> None:
    """Only kinds that the policy judges are accepted, not a kind of another group with the same name."""

    def judged(word: str) -> object:
        return bind(
            {
                "apiVersion": "gatewright.io/v1alpha1",
                "kind": "ClusterAdmissionPolicy",
                "metadata": {"name": "it"},
                "spec": {"policy": "replica-limits", "match": {"any": [{"kinds": [word]}]}},
            },
            catalogue(),
        )

    assert judged("apps/v1/Deployment").match == judged("Deployment").match  # type: ignore[attr-defined]
    for word in ("v1/Deployment", "serving.example.com/v1/Deployment"):
        with pytest.raises(FaultsError):
            judged(word)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (rules("example.org/v1/Gadget", "Deployment"), ["example.org/v1"]),
        (
            rules("b.org/v1/B", "b.org/v1beta1/B", "a.org/v1/A"),
            ["a.org/v1", "b.org/v1", "b.org/v1beta1"],
        ),
        (rules("gatewright.io/v1alpha1/AdmissionPolicy", "v1/Node", "nonsense", "a/b/c"), []),
        (rules("example.org/v1/Gadget") | {"validations": []}, []),
        (rules("example.org/v1/Gadget") | {"match": {"any": {"kinds": 3}}}, []),
        ({"validations": [1], "match": {"any": [3, {"kinds": 3}, {"kinds": [3, None]}]}}, []),
        (["example.org/v1/Gadget"], []),
        (None, []),
    ],
)
def test_versions_of_custom_kinds_that_rules_are_about(spec: Any, expected: list[str]) -> None:
    """Only those of rules in CEL; an invalid spec, which policy-objects denies, has none."""
    assert custom_versions(spec) == expected


def test_few_custom_kinds_are_asked_for() -> None:
    """As many as rules are checked against: a tenant's policy may name thousands."""
    words = [f"group-{number:03}.org/v1/Kind" for number in range(1000)]
    assert custom_versions(rules(*words)) == [f"group-{number:03}.org/v1" for number in range(10)]
