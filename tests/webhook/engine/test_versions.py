"""Policies that name different versions of a kind each judge objects in their version."""

import json

import pytest

from tests.webhook.asking import denying
from webhook import review
from webhook.engine import Engine
from webhook.engine.kinds import Kind, versions_sent


def naming(name, *versions):
    """Return a policy that denies every Issuer, named in these versions."""
    return denying(name, {"kinds": [f"example.com/{version}/Issuer" for version in versions]})


def sent(version, subresource=""):
    """Return a request about an Issuer in a version, or about its scale, as the API server sends it."""
    issuer = {"group": "example.com", "version": version, "kind": "Issuer"}
    scale = {"group": "autoscaling", "version": "v1", "kind": "Scale"}
    kind = scale if subresource else issuer
    request = {
        "uid": "u-1",
        "kind": kind,
        "resource": {"group": "example.com", "version": version, "resource": "issuers"},
        "subResource": subresource,
        "operation": "UPDATE" if subresource else "CREATE",
        "name": "it",
        "namespace": "shop",
        "object": {"kind": kind["kind"], "metadata": {"name": "it"}},
    }
    body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    return review.read(json.dumps(body).encode())


def judges(engine, request):
    """Return the names of the policies that judge a request."""
    return [outcome.policy for outcome in engine.validate(request).outcomes]


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("v1", ["new", "both"]),
        ("v1beta1", ["old", "both"]),
        ("v2", ["new", "old", "both"]),  # sent by a configuration that somebody wrote by hand
    ],
)
def test_a_policy_judges_an_object_in_a_version_that_it_names(version, expected):
    """The API server converts the object for the other policies, and sends it to their webhook."""
    policies = naming("new", "v1"), naming("old", "v1beta1"), naming("both", "v1", "v1beta1")
    assert judges(Engine(policies, converted=True), sent(version)) == expected


def test_policies_with_one_version_judge_every_object():
    """Nothing else is sent for them."""
    assert judges(Engine([naming("new", "v1")], converted=True), sent("v2")) == ["new"]


def test_every_policy_judges_a_file():
    """No API server converts it, so that it is judged as it was written."""
    assert judges(Engine([naming("new", "v1"), naming("old", "v1beta1")]), sent("v1")) == [
        "new",
        "old",
    ]


def test_the_version_of_a_subresource_is_that_of_its_parent():
    """The object of /scale is an autoscaling/v1 Scale whatever the version of the parent."""
    scales = {"subresources": ["scale"], "kinds": ["example.com/v1beta1/Issuer"]}
    engine = Engine([naming("new", "v1"), denying("scales", scales)], converted=True)
    assert judges(engine, sent("v1beta1", "scale")) == ["scales"]
    assert judges(engine, sent("v1", "scale")) == []


def test_versions_beyond_the_fourth_set_are_sent_together():
    """A tenant cannot add a webhook for each version that it makes up."""
    kinds = [Kind("example.com", "Issuer", "issuers", (f"v{number}",)) for number in range(1, 7)]
    assert [*versions_sent(kinds).values()] == [
        ("v1",),
        ("v2",),
        ("v3",),
        *[("v4", "v5", "v6")] * 3,
    ]
