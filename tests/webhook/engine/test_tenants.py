"""A tenant's policy applies to its own namespace only."""

import re
import time
from dataclasses import replace

import pytest

from config.documents import Document
from config.faults import FaultsError
from tests.webhook.asking import ask
from webhook.engine import Engine, Policy
from webhook.engine.kinds import Kind
from webhook.policy_sets.bound_objects import bind
from webhook.policy_sets.catalogue import catalogue
from webhook.policy_sets.policy_set import PolicySetError, read


def written(policy: str, **spec: object) -> dict[str, object]:
    """Return a tenant's policy object in namespace shop."""
    return {
        "apiVersion": "gatewright.io/v1alpha1",
        "kind": "AdmissionPolicy",
        "metadata": {"name": "own", "namespace": "shop"},
        "spec": {"policy": policy} | spec,
    }


def engine(policy: str, **params: object) -> Engine:
    """Return an engine with one tenant's policy in namespace shop."""
    return Engine([bind(written(policy, params=params), catalogue())])


@pytest.mark.parametrize(("namespace", "found"), [("shop", ["shop/own"]), ("lab", []), ("", [])])
def test_it_is_in_force_in_its_namespace(namespace, found):
    """Messages name it by namespace and name."""
    judge = engine("replica-limits", maximum=3)
    verdict = judge.validate(
        ask({"kind": "Deployment", "spec": {"replicas": 4}}, "Deployment", namespace=namespace)
    )
    assert [outcome.policy for outcome in verdict.outcomes] == found


def test_its_look_ups_are_for_its_namespace_only():
    """Other tenants' requests do not wait for them."""
    judge = engine("service-selectors")
    asked = {
        namespace: judge.needs(ask({}, "Service", namespace=namespace).attributes)
        for namespace in ("shop", "lab")
    }
    assert (asked, judge.needs(ask({}).attributes)) == ({"shop": {"services"}, "lab": set()}, set())


def test_thousands_of_tenants_are_cheap():
    """Otherwise a tenant with many policies could block all reviews."""
    policy = bind(written("required-labels", params={"labels": {"team": "*"}}), catalogue())
    policies = [
        replace(policy, name=f"own-{number % 4}", namespace=f"team-{number // 4}")
        for number in range(2000)
    ]
    started = time.process_time()
    judge = Engine(policies)
    assert time.process_time() - started < 4.0
    started = time.process_time()
    for _ in range(100):
        verdict = judge.validate(ask({"kind": "ConfigMap"}, "ConfigMap", namespace="team-1"))
    assert time.process_time() - started < 0.1
    assert [each.policy for each in verdict.outcomes] == [
        f"team-1/own-{number}" for number in range(4)
    ]


def test_a_namespace_object_does_not_belong_to_its_tenant():
    """A review of a Namespace has its name as its namespace, but its labels belong to the platform."""
    judge = engine("required-labels", labels={"team": "*"})
    labelled = {"kind": "Namespace", "metadata": {"name": "shop"}}
    assert judge.validate(ask(labelled, "Namespace", name="shop", namespace="shop")).outcomes == ()
    assert (
        len(
            judge.validate(
                ask({"kind": "ConfigMap", "metadata": {"name": "shop"}}, "ConfigMap")
            ).outcomes
        )
        == 1
    )
    assert all(kind.namespaced for kind in judge.judged_kinds)


def test_it_reports_nothing_about_other_namespaces():
    """Otherwise a tenant could find out the hosts of others; a cluster policy reports them deliberately."""
    told = r"^spec\.policy: unique-ingress-hosts looks at objects of all namespaces; an AdmissionPolicy knows those of its"
    with pytest.raises(ValueError, match=told):
        bind(written("unique-ingress-hosts"), catalogue())
    cluster = {"kind": "ClusterAdmissionPolicy", "metadata": {"name": "own"}}
    assert bind(written("unique-ingress-hosts") | cluster, catalogue()).needs == {"ingresses"}


def test_a_clause_for_cluster_scoped_objects_is_an_error():
    """It would never match; in a cluster policy it is valid."""
    spec = {"params": {"labels": {"team": "*"}}, "match": {"any": [{"kinds": ["Namespace"]}]}}
    with pytest.raises(
        ValueError,
        match=r'^spec\.match\.any\[0\]\.kinds: required-labels does not look at "Namespace"; known: ',
    ):
        bind(written("required-labels", **spec), catalogue())
    cluster = {"kind": "ClusterAdmissionPolicy", "metadata": {"name": "own"}}
    assert bind(written("required-labels", **spec) | cluster, catalogue()).name == "own"


def test_a_rule_about_a_cluster_scoped_kind_is_an_error():
    """It would judge the other kinds of its clause, and never this one."""
    rule = {"expression": "false", "message": "no"}
    spec = {"match": {"any": [{"kinds": ["Pod", "Node"]}]}, "validations": [rule]}
    tenants = written("") | {"spec": spec}
    with pytest.raises(FaultsError) as error:
        bind(tenants, catalogue())
    text = "an AdmissionPolicy judges objects in its namespace. Use a ClusterAdmissionPolicy"
    assert error.value.faults == (("spec.match.any[0].kinds", f"Node is cluster-scoped; {text}"),)
    cluster = {"kind": "ClusterAdmissionPolicy", "metadata": {"name": "own"}}
    assert bind(tenants | cluster, catalogue()).name == "own"


@pytest.mark.parametrize("word", ["example.com/v1/Issuer", "issuers.example.com/v1/Issuer"])
def test_a_rule_about_a_custom_kind_that_is_defined_as_cluster_scoped_is_an_error(word):
    """Only the definition has the scope; without it, the policy is accepted."""
    rule = {"expression": "false", "message": "no"}
    spec = {"match": {"any": [{"kinds": ["Pod"]}, {"kinds": [word]}]}, "validations": [rule]}
    documents = [Document("own.yaml", written("") | {"spec": spec})]
    issuer = Kind("example.com", "Issuer", "issuers", namespaced=False)
    with pytest.raises(PolicySetError) as error:
        read(documents, catalogue(), [issuer])
    assert str(error.value) == (
        "own.yaml: AdmissionPolicy own: spec.match.any[1].kinds: Issuer is cluster-scoped; an "
        "AdmissionPolicy judges objects in its namespace. Use a ClusterAdmissionPolicy"
    )
    for kinds in ((), [replace(issuer, namespaced=True)]):
        assert len(read(documents, catalogue(), kinds).policies) == 1


def test_a_built_in_policy_about_cluster_scoped_kinds_is_an_error():
    """It would judge nothing in the namespace."""
    policies = {"classes": Policy("classes", kinds="StorageClass", validate=lambda *_: ())}
    fault = "spec.policy: classes judges only cluster-scoped kinds; use a ClusterAdmissionPolicy"
    with pytest.raises(FaultsError, match=f"^{re.escape(fault)}$"):
        bind(written("classes"), policies)
    cluster = {"kind": "ClusterAdmissionPolicy", "metadata": {"name": "own"}}
    assert bind(written("classes") | cluster, policies).name == "own"


def test_a_clause_for_some_of_the_kinds_is_right():
    """It need not match everything that the policy judges."""
    judge = Engine(
        [bind(written("replica-limits", match={"any": [{"kinds": ["Deployment"]}]}), catalogue())]
    )
    assert judge.requirements(ask({}, "Deployment").attributes) is not None
    assert judge.requirements(ask({}, "StatefulSet").attributes) is None


def test_a_clause_for_another_namespace_is_an_error():
    """It would silently match nothing; a pattern that includes its own is right."""
    spec = {"match": {"any": [{"namespaces": ["sh*"]}, {"namespaces": ["lab"]}]}}
    fault = "spec.match.any[1].namespaces: matches nothing: the policy is in force in the namespace shop only"
    with pytest.raises(ValueError, match=f"^{re.escape(fault)}$"):
        bind(written("replica-limits", **spec), catalogue())
