"""Policies that match nothing, or only report."""

import pytest

from config.documents import Document
from gatewright.tools.doctor import diagnose
from gatewright.tools.doctor.state import MODELS, ClusterState
from tests.gatewright.tools.doctor.clusters import NOW, found, namespace

API = {"apiVersion": "admissionregistration.k8s.io/v1"}
CREATED = {"creationTimestamp": "2026-01-01T00:00:00Z"}
POLICY = API | {
    "kind": "ValidatingAdmissionPolicy",
    "metadata": {"name": "p"},
    "spec": {"validations": [{"expression": "true"}]},
}
BINDING = API | {
    "kind": "ValidatingAdmissionPolicyBinding",
    "metadata": {"name": "b"},
    "spec": {"policyName": "p", "validationActions": ["Deny"]},
}
AUDITING = {"policyName": "p", "validationActions": ["Audit"]}
PARAMS = {"paramKind": {"apiVersion": "v1", "kind": "Namespace"}}


def exception(policy):
    """Return an exception of Kyverno."""
    return {
        "apiVersion": "kyverno.io/v2",
        "kind": "PolicyException",
        "metadata": {"name": "e", "namespace": "shop"},
        "spec": {"exceptions": [{"policyName": policy, "ruleNames": ["r"]}]},
    }


def cel_exception(policy):
    """Return an exception of Kyverno from a policy in CEL."""
    return exception("") | {
        "apiVersion": "policies.kyverno.io/v1",
        "spec": {"policyRefs": [{"name": policy, "kind": "ValidatingPolicy"}]},
    }


def own_exception(policy):
    """Return an exception of Gatewright."""
    return exception("") | {
        "apiVersion": "gatewright.io/v1alpha1",
        "spec": {"exceptions": [{"policy": policy}]},
    }


def reported(reason):
    """Return the status of an exception of Gatewright."""
    return {"status": {"conditions": [{"type": "Ready", "reason": reason}]}}


def acting(api_version, kind, *actions):
    """Return a policy in CEL of Kyverno, or one of Gatewright."""
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": "k"} | CREATED,
        "spec": {"validationActions": list(actions)},
    }


def narrow(status):
    """Return a policy of Gatewright whose status says whether only its namespaces are sent."""
    policy = acting("gatewright.io/v1alpha1", "ClusterAdmissionPolicy", "Deny")
    return policy | {"status": {"conditions": [{"type": "Narrow", "status": status}]}}


def with_actions(*actions):
    """Return a policy of Kyverno whose rules have actions of their own."""
    policy = cluster_policy("Audit")
    rules = [{"name": f"r{n}", "validate": {"failureAction": e}} for n, e in enumerate(actions)]
    return policy | {"spec": policy["spec"] | {"rules": rules}}


def overridden(action):
    """Return a policy of Kyverno that only reports, except in one namespace."""
    policy = cluster_policy("Audit")
    override = {"action": action, "namespaces": ["shop"]}
    return policy | {"spec": policy["spec"] | {"validationFailureActionOverrides": [override]}}


def constraint(action):
    """Return a constraint of Gatekeeper."""
    return {
        "apiVersion": "constraints.gatekeeper.sh/v1beta1",
        "kind": "K8sRequiredLabels",
        "metadata": {"name": "c"} | CREATED,
        "spec": {"enforcementAction": action},
    }


def cluster_policy(action):
    """Return a policy of Kyverno."""
    return {
        "apiVersion": "kyverno.io/v1",
        "kind": "ClusterPolicy",
        "metadata": {"name": "k"} | CREATED,
        "spec": {"validationFailureAction": action, "rules": [{"name": "r", "validate": {}}]},
    }


@pytest.mark.parametrize(
    ("reference", "is_found"),
    [
        ({"name": "shop"}, True),
        ({"name": "shop", "namespace": "other"}, False),
        ({"name": "gone"}, False),
        ({"selector": {"matchLabels": {"kubernetes.io/metadata.name": "shop"}}}, True),
        ({"selector": {"matchLabels": {"kubernetes.io/metadata.name": "gone"}}}, False),
    ],
)
def test_parameters_of_any_scope_are_found_by_name_or_selector(reference, is_found):
    """The API server refuses every request if there are none: parameterNotFoundAction is Deny."""
    policy = POLICY | {"spec": POLICY["spec"] | PARAMS}
    binding = BINDING | {"spec": BINDING["spec"] | {"paramRef": reference}}
    expected = [] if is_found else [("critical", "params")]
    assert found(policy, binding, namespace("shop")) == expected


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        ([POLICY, BINDING], []),
        ([POLICY], [("warning", "policy-without-binding")]),
        ([BINDING], [("warning", "binding-without-policy")]),
        ([POLICY, BINDING | {"spec": AUDITING}], []),
        (
            [POLICY, BINDING | {"spec": AUDITING, "metadata": {"name": "b"} | CREATED}],
            [("note", "never-denies")],
        ),
        (
            [POLICY | {"spec": POLICY["spec"] | PARAMS}, BINDING],
            [("critical", "params")],
        ),
        (
            [
                POLICY | {"spec": POLICY["spec"] | PARAMS},
                BINDING
                | {
                    "spec": BINDING["spec"]
                    | {
                        "paramRef": {
                            "name": "x",
                            "namespace": "y",
                            "parameterNotFoundAction": "Allow",
                        }
                    }
                },
            ],
            [("warning", "params")],
        ),
        ([constraint("dryrun")], [("note", "never-denies")]),
        ([constraint("deny")], []),
        ([cluster_policy("Audit")], [("note", "never-denies")]),
        ([cluster_policy("Enforce")], []),
        ([cluster_policy("Enforce"), exception("k")], []),
        ([cluster_policy("Enforce"), exception("gone")], [("note", "unused-exception")]),
        ([cluster_policy("Enforce"), cel_exception("k")], []),
        ([cluster_policy("Enforce"), cel_exception("gone")], [("note", "unused-exception")]),
        ([cluster_policy("Enforce"), own_exception("gone")], [("note", "unused-exception")]),
        (
            [cluster_policy("Enforce"), own_exception("gone") | reported("Invalid")],
            [("note", "unused-exception")],
        ),
        # The controller knows it from the chart's ConfigMap.
        ([cluster_policy("Enforce"), own_exception("of-the-chart") | reported("InForce")], []),
        ([cluster_policy("Enforce"), own_exception("of-the-chart") | reported("Expired")], []),
        ([with_actions("Audit", "Enforce")], []),
        ([with_actions("Audit", "audit")], [("note", "never-denies")]),
        ([overridden("Enforce")], []),
        ([overridden("Audit")], [("note", "never-denies")]),
        ([acting("policies.kyverno.io/v1", "ValidatingPolicy", "Deny")], []),
        (
            [acting("policies.kyverno.io/v1", "ValidatingPolicy", "Audit")],
            [("note", "never-denies")],
        ),
        ([narrow("True")], []),
        ([narrow("False")], [("warning", "widened-registration")]),
        (
            [acting("gatewright.io/v1alpha1", "ClusterAdmissionPolicy", "Warn", "Audit")],
            [("note", "never-denies")],
        ),
    ],
)
def test_policies_without_the_effect_that_they_seem_to_have(objects, expected):
    """Each kind of fault is tested alone."""
    assert found(*objects) == expected


def test_an_exception_from_a_policy_that_cannot_be_read_is_no_finding():
    """Its policy may be the one that is malformed."""
    state = ClusterState(frozenset(MODELS))
    malformed = cluster_policy("Enforce") | {"spec": 7}
    other = acting("policies.kyverno.io/v1", "ValidatingPolicy", "Deny")
    problems = state.read(map(Document.of_object, [malformed, other, exception("k")]))
    assert len(problems) == 1
    assert diagnose(state, NOW) == []
