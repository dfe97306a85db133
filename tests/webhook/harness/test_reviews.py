"""The review of a file equals the one that the API server would send."""

import orjson
import pytest

from webhook.harness.bases import smallest
from webhook.harness.reviews import Admission, review
from webhook.review import read


def test_a_review_is_complete():
    """It has every field that the API server sets."""
    pod = smallest("Pod", "it")
    sent = orjson.loads(review(Admission(pod, namespace="shop", username="jane")))
    assert sent == {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "00000000-0000-0000-0000-000000000000",
            "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "requestKind": {"group": "", "version": "v1", "kind": "Pod"},
            "resource": {"group": "", "version": "v1", "resource": "pods"},
            "subResource": "",
            "operation": "CREATE",
            "namespace": "shop",
            "name": "it",
            "userInfo": {"username": "jane", "groups": ["system:authenticated"]},
            "object": pod,
            "oldObject": None,
        },
    }


@pytest.mark.parametrize(
    ("admission", "kind", "target", "name"),
    [
        (Admission(smallest("WebApp")), "WebApp", ("example.com", "webapps", ""), "case"),
        (
            Admission(
                smallest("Scale"),
                subresource="scale",
                parent_kind=("apps", "Deployment"),
                operation="UPDATE",
            ),
            "Scale",
            ("apps", "deployments", "scale"),
            "case",
        ),
        (
            Admission(None, smallest("Job", "old"), operation="DELETE"),
            "Job",
            ("batch", "jobs", ""),
            "old",
        ),
        (
            Admission({"apiVersion": "v1", "kind": "ConfigMap", "metadata": None}),
            "ConfigMap",
            ("", "configmaps", ""),
            "",
        ),
    ],
)
def test_a_review_names_kind_and_resource(admission, kind, target, name):
    """A subresource's object has its own kind; on DELETE the kind is the old object's."""
    attributes = read(review(admission)).attributes
    assert (
        attributes.kind,
        (attributes.resource_group, attributes.resource, attributes.subresource),
        attributes.name,
    ) == (kind, target, name)
