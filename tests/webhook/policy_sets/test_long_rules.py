"""Which reviews count as slow, however small the object is: by the number of tenants' rules that run."""

from datetime import UTC, datetime

import pytest

from config.settings import Settings
from gatewright.processes.planners import planners_of
from webhook.engine import Attributes, Engine
from webhook.policy_sets.bound_objects import bind
from webhook.policy_sets.catalogue import catalogue
from webhook.policy_sets.policy_set import PolicySet, in_force

ABOUT = {"apiVersion": "gatewright.io/v1alpha1"}
TENANTS = {"kind": "AdmissionPolicy", "metadata": {"name": "own", "namespace": "shop"}}
CLUSTERS = {"kind": "ClusterAdmissionPolicy", "metadata": {"name": "own"}}
PODS = {"any": [{"kinds": ["Pod"]}]}
RULE = {"match": PODS, "validations": [{"expression": "true"}]}
CONDITION = {"policy": "replica-limits", "matchConditions": [{"name": "a", "expression": "true"}]}
BUILT_IN = {"policy": "image-tags", "match": PODS}
LABELS = {f"k{number}": "/[a-z]+/" for number in range(300)}


def exceptions(patterns: int):
    """Return an exception of a tenant with some patterns of names."""
    entry = {"policy": "own", "names": [f"a{number}-*" for number in range(patterns)]}
    spec = {
        "reason": "r",
        "expires": datetime(2100, 1, 1, tzinfo=UTC).isoformat(),
        "exceptions": [entry],
    }
    return {
        "kind": "PolicyException",
        "metadata": {"name": "all", "namespace": "shop"},
        "spec": spec,
    }


def engine(*documents) -> Engine:
    """Return the engine of policy objects and exceptions."""
    bound = [bind(ABOUT | each, catalogue()) for each in documents]
    policies = tuple(each for each in bound if hasattr(each, "policy"))
    found = PolicySet(policies, tuple(each for each in bound if each not in policies))
    return Engine(in_force(found, catalogue()), planners_of(Settings(), "home"))


def takes_long(engine: Engine, about: Attributes) -> bool:
    """Return whether judging may take long; a request without policies does not."""
    requirements = engine.requirements(about)
    return requirements is not None and requirements.takes_long


def request(kind="Pod", resource="pods", group="", namespace="shop") -> Attributes:
    """Return the attributes of a creation."""
    return Attributes("u", "CREATE", group, "v1", kind, group, resource, namespace=namespace)


@pytest.mark.parametrize(
    ("documents", "long"),
    [
        ([TENANTS | {"spec": RULE}], True),
        ([TENANTS | {"spec": BUILT_IN}], False),
        ([TENANTS | {"spec": BUILT_IN}, exceptions(100)], False),
        ([TENANTS | {"spec": BUILT_IN}, exceptions(300)], True),
        ([TENANTS | {"spec": {"policy": "required-labels", "params": {"labels": LABELS}}}], True),
        ([CLUSTERS | {"spec": RULE}], False),
    ],
    ids=[
        "a rule",
        "a built-in policy",
        "some patterns",
        "patterns",
        "parameters",
        "the platform's",
    ],
)
def test_the_rules_of_tenants_decide(documents, long):
    """Expressions may use up their budget, and patterns and parameters add up; the platform is trusted."""
    assert takes_long(engine(*documents), request()) is long


@pytest.mark.parametrize(
    ("about", "long"),
    [
        (request(), True),
        (request(namespace="lab"), False),
        (request("ConfigMap", "configmaps"), False),
        (request("WebApp", "webapps", "example.com"), True),
    ],
    ids=["the kind", "another namespace", "another kind", "a parent"],
)
def test_only_rules_that_run_count(about, long):
    """For an object whose children are judged, all rules of its namespace may run."""
    assert takes_long(engine(TENANTS | {"spec": RULE}), about) is long


def test_a_condition_is_a_rule():
    """Match conditions of a built-in policy count, too."""
    found = engine(TENANTS | {"spec": CONDITION})
    assert takes_long(found, request("Deployment", "deployments", "apps"))
