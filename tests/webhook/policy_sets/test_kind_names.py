"""A policy can name any kind in the usual notations; a name that can match nothing is an error."""

import pytest

from config.faults import FaultsError
from webhook.engine.kinds import Kind
from webhook.policy_sets.bound_objects import bind
from webhook.policy_sets.catalogue import catalogue
from webhook.policy_sets.kind_names import IN_FULL, kinds_named


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
