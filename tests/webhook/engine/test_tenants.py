"""A tenant's policy applies to its own namespace only."""

import time
from dataclasses import replace

import pytest

from tests.webhook.asking import ask
from webhook.engine import Engine
from webhook.engine.policy_set import bind
from webhook.policies import catalogue


def written(policy: str, **spec: object) -> dict[str, object]:
    """A policy object of a tenant in namespace shop."""
    return {
        "apiVersion": "gatewright.io/v1alpha1",
        "kind": "AdmissionPolicy",
        "metadata": {"name": "own", "namespace": "shop"},
        "spec": {"policy": policy} | spec,
    }


def engine(policy: str, **params: object) -> Engine:
    """An engine with one policy of a tenant in namespace shop."""
    return Engine([bind(written(policy, params=params), catalogue())])


@pytest.mark.parametrize(("namespace", "found"), [("shop", ["shop/own"]), ("lab", []), ("", [])])
def test_it_is_in_force_in_its_namespace(namespace, found):
    """Messages call it by namespace and name."""
    judge = engine("replica-limits", maximum=3)
    verdict = judge.validate(ask({"kind": "Deployment", "spec": {"replicas": 4}}, "Deployment", namespace=namespace))
    assert [outcome.policy for outcome in verdict.outcomes] == found


def test_what_it_needs_is_looked_up_for_its_namespace_alone():
    """No tenant makes others wait."""
    judge = engine("service-selectors")
    asked = {
        namespace: judge.needs(ask({}, "Service", namespace=namespace).attributes) for namespace in ("shop", "lab")
    }
    assert (asked, judge.needs(ask({}).attributes)) == ({"shop": {"services"}, "lab": set()}, set())


def test_thousands_of_tenants_cost_a_review_nothing_and_a_change_little():
    """Whoever may write policies for his own namespace could otherwise stop all reviews by writing many."""
    policy = bind(written("required-labels", params={"labels": {"team": "*"}}), catalogue())
    policies = [replace(policy, name=f"own-{number % 4}", namespace=f"team-{number // 4}") for number in range(2000)]
    started = time.process_time()
    judge = Engine(policies)
    assert time.process_time() - started < 4.0
    started = time.process_time()
    for _ in range(100):
        verdict = judge.validate(ask({"kind": "ConfigMap"}, "ConfigMap", namespace="team-1"))
    assert time.process_time() - started < 0.1
    assert [each.policy for each in verdict.outcomes] == [f"team-1/own-{number}" for number in range(4)]


def test_the_namespace_itself_is_not_the_tenants():
    """A review of a Namespace says its name as its namespace, but whoever may label it is not the tenant's to say."""
    judge = engine("required-labels", labels={"team": "*"})
    labelled = {"kind": "Namespace", "metadata": {"name": "shop"}}
    assert judge.validate(ask(labelled, "Namespace", name="shop", namespace="shop")).outcomes == ()
    assert len(judge.validate(ask({"kind": "ConfigMap", "metadata": {"name": "shop"}}, "ConfigMap")).outcomes) == 1
    assert all(kind.namespaced for kind in judge.judged_kinds)


def test_it_tells_nothing_of_other_namespaces():
    """A tenant could otherwise ask whose every host is; what a cluster's policy tells, the platform wants told."""
    told = (
        r"^spec\.policy: unique-ingress-hosts looks at objects of all namespaces; an AdmissionPolicy knows those of its"
    )
    with pytest.raises(ValueError, match=told):
        bind(written("unique-ingress-hosts"), catalogue())
    cluster = {"kind": "ClusterAdmissionPolicy", "metadata": {"name": "own"}}
    assert bind(written("unique-ingress-hosts") | cluster, catalogue()).needs == {"ingresses"}


def test_a_clause_about_what_is_in_no_namespace_is_a_fault():
    """It would never hold; of the cluster's policy the same clause is none."""
    spec = {"params": {"labels": {"team": "*"}}, "match": {"any": [{"kinds": ["Namespace"]}]}}
    with pytest.raises(
        ValueError, match=r'^spec\.match\.any\[0\]\.kinds: required-labels does not look at "Namespace"; known: '
    ):
        bind(written("required-labels", **spec), catalogue())
    cluster = {"kind": "ClusterAdmissionPolicy", "metadata": {"name": "own"}}
    assert bind(written("required-labels", **spec) | cluster, catalogue()).name == "own"
