"""The API server converts old API versions for the webhook; the policy judges the version that was sent."""

import pytest

from config.documents import parse_documents
from tests.policies.api_lifecycles import TABLE, table
from webhook import review
from webhook.engine import Engine
from webhook.harness.bases import smallest
from webhook.harness.reviews import Admission
from webhook.harness.reviews import review as encode
from webhook.policies.deprecated_apis import BY_KIND
from webhook.policy_sets.catalogue import catalogue
from webhook.policy_sets.policy_set import load

POLICY = b"""\
apiVersion: gatewright.io/v1alpha1
kind: ClusterAdmissionPolicy
metadata: {name: deprecated-apis}
spec: {policy: deprecated-apis}
"""
ENGINE = Engine(load(parse_documents(POLICY, "policies.yaml"), catalogue()))


def found(sent: str) -> list[str]:
    """Return the violations of a CronJob that was sent in the version `sent`, and converted to batch/v1."""
    admission = Admission(smallest("CronJob"), namespace="default", sent=("batch", sent, "CronJob"))
    verdict = ENGINE.validate(review.read(encode(admission)))
    return [
        violation.message
        for outcome in verdict.outcomes
        if outcome.policy == "deprecated-apis"
        for violation in outcome.violations
    ]


def test_the_version_of_the_request_counts():
    """The review has the object as batch/v1, but the request was batch/v1beta1."""
    assert found("v1beta1") == [
        "apiVersion: batch/v1beta1 CronJob; Kubernetes 1.25 removed it. Use batch/v1."
    ]
    assert found("v1") == []


@pytest.mark.parametrize(
    ("api_version", "kind", "said"),
    [
        (
            "extensions/v1beta1",
            "PodSecurityPolicy",
            "Kubernetes 1.16 removed it. Remove the object.",
        ),
        (
            "authentication.k8s.io/v1beta1",
            "TokenReview",
            "Kubernetes 1.22 removed it. Use authentication.k8s.io/v1.",
        ),
        (
            "authorization.k8s.io/v1beta1",
            "SubjectAccessReview",
            "Kubernetes 1.22 removed it. Use authorization.k8s.io/v1.",
        ),
        (
            "admissionregistration.k8s.io/v1alpha1",
            "ValidatingAdmissionPolicy",
            "Kubernetes 1.32 removed it. Use admissionregistration.k8s.io/v1.",
        ),
        (
            "certificates.k8s.io/v1alpha1",
            "ClusterTrustBundle",
            "Kubernetes 1.37 removed it. Use certificates.k8s.io/v1.",
        ),
        (
            "storage.k8s.io/v1alpha1",
            "VolumeAttachment",
            "Kubernetes 1.24 removed it. Use storage.k8s.io/v1.",
        ),
        ("policy/v1beta1", "Eviction", "Kubernetes 1.25 removed it. Use policy/v1."),
        ("apps/v1beta2", "ControllerRevision", "Kubernetes 1.16 removed it. Use apps/v1."),
    ],
)
def test_kinds_that_are_rare_are_known(api_version, kind, said):
    """Every API version that Kubernetes has removed is denied."""
    object = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "old"}}
    verdict = ENGINE.validate(review.read(encode(Admission(object))))
    messages = [
        violation.message for outcome in verdict.outcomes for violation in outcome.violations
    ]
    assert messages == [f"apiVersion: {api_version} {kind}; {said}"]


def test_versions_are_deprecated_before_they_go():
    """The replacement of a version is removed later than the version."""
    assert [row for row, (_, deprecated, removed) in BY_KIND.items() if deprecated >= removed] == []
    successors = [
        (removed, BY_KIND.get((new, kind))) for (_, kind), (new, _, removed) in BY_KIND.items()
    ]
    assert [row for row in successors if row[1] is not None and row[1][2] <= row[0]] == []


@pytest.mark.controlplane
def test_the_table_is_that_of_kubernetes():
    """The committed table equals the lifecycle markers of k8s.io/api."""
    assert TABLE.read_text() == table()


def test_the_webhook_gets_only_removed_versions_of_rare_kinds():
    """Lease renewals are not sent to the webhook."""
    kinds = [target.kind for target in catalogue()["deprecated-apis"].targets]
    versions = {(kind.group, kind.kind): kind.versions for kind in kinds}
    assert versions["coordination.k8s.io", "Lease"] == ("v1beta1",)
    assert versions["apps", "Deployment"] == ("v1",)
