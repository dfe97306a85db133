"""Old API versions that an API server still serves reach the webhook converted; what counts is what was sent."""

from config.documents import parse_documents
from webhook import review
from webhook.engine import Engine
from webhook.engine.policy_set import load
from webhook.harness.bases import smallest
from webhook.harness.reviews import Admission
from webhook.harness.reviews import review as encode
from webhook.policies import catalogue
from webhook.policies.deprecated_apis import BY_KIND

POLICY = b"""\
apiVersion: gatewright.io/v1alpha1
kind: ClusterAdmissionPolicy
metadata: {name: deprecated-apis}
spec: {policy: deprecated-apis}
"""
ENGINE = Engine(load(parse_documents(POLICY, "policies.yaml"), catalogue()))


def found(sent: str) -> list[str]:
    """Return what is found where a CronJob was sent in the version `sent`, and came as batch/v1."""
    admission = Admission(smallest("CronJob"), namespace="default", sent=("batch", sent, "CronJob"))
    verdict = ENGINE.validate(review.read(encode(admission)))
    return [
        violation.message
        for outcome in verdict.outcomes
        if outcome.policy == "deprecated-apis"
        for violation in outcome.violations
    ]


def test_what_was_sent_counts():
    """The object came as batch/v1, but somebody wrote batch/v1beta1."""
    assert found("v1beta1") == ["apiVersion: batch/v1beta1 CronJob; Kubernetes 1.25 removed it. Use batch/v1."]
    assert found("v1") == []


def test_versions_are_deprecated_before_they_go():
    """What replaces a version is no version that is going itself."""
    assert [row for row, (_, deprecated, removed) in BY_KIND.items() if deprecated >= removed] == []
    assert [(new, kind) for (_, kind), (new, _, _) in BY_KIND.items() if (new, kind) in BY_KIND] == []


def test_kinds_outside_of_the_table_are_asked_about_by_their_old_versions_only():
    """Nobody waits for a webhook with each renewal of a Lease."""
    versions = {target.kind.kind: target.kind.versions for target in catalogue()["deprecated-apis"].targets}
    assert versions["Lease"] == ("v1beta1",)
    assert versions["Deployment"] == ("v1",)
