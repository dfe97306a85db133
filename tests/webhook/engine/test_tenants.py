"""A tenant's policy restricts its own namespace, and nobody else."""

import pytest

from tests.webhook.asking import ask
from webhook.engine import Engine
from webhook.engine.policy_set import bind
from webhook.policies import catalogue


def engine(policy: str, **params: object) -> Engine:
    """An engine with one policy of a tenant in namespace shop."""
    written = {
        "apiVersion": "gatewright.io/v1alpha1",
        "kind": "AdmissionPolicy",
        "metadata": {"name": "own", "namespace": "shop"},
        "spec": {"policy": policy, "params": params},
    }
    return Engine([bind(written, catalogue())])


@pytest.mark.parametrize(("namespace", "found"), [("shop", ["shop/own"]), ("lab", []), ("", [])])
def test_it_is_in_force_in_its_namespace(namespace, found):
    """Messages call it by namespace and name."""
    judge = engine("replica-limits", maximum=3)
    verdict = judge.validate(ask({"kind": "Deployment", "spec": {"replicas": 4}}, "Deployment", namespace=namespace))
    assert [outcome.policy for outcome in verdict.outcomes] == found


def test_the_namespace_itself_is_not_the_tenants():
    """A review of a Namespace says its name as its namespace, but whoever may label it is not the tenant's to say."""
    judge = engine("required-labels", labels={"team": "*"})
    labelled = {"kind": "Namespace", "metadata": {"name": "shop"}}
    assert judge.validate(ask(labelled, "Namespace", name="shop", namespace="shop")).outcomes == ()
    assert len(judge.validate(ask({"kind": "ConfigMap", "metadata": {"name": "shop"}}, "ConfigMap")).outcomes) == 1
    assert all(target.kind.namespaced for target in judge.targets(mutating=False, fails_closed=True))
