"""Policies that match nothing, or only report."""

import pytest

from tests.gatewright.doctor.clusters import found

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
    ],
)
def test_policies_without_the_effect_that_they_seem_to_have(objects, expected):
    """Each kind of fault is tested alone."""
    assert found(*objects) == expected
