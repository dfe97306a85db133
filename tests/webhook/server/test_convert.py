"""Conversion reviews over HTTP, as the API server sends them, and invalid ones."""

import copy
import functools
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.characters import CHARACTERS
from webhook.review import NotAReviewError
from webhook.server.convert import answer

V1, OLD = "voting.schoolofdevops.com/v1", "voting.schoolofdevops.com/v1alpha1"


def vote(name="pets", **spec):
    """A VoteConfig in v1alpha1."""
    spec = {"question": "Which?", "options": [{"id": "a", "label": "Cats"}], **spec}
    return {
        "apiVersion": OLD,
        "kind": "VoteConfig",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": spec,
    }


def review(*objects, **request):
    """A review as the API server sends it."""
    body = {"uid": "u-1", "desiredAPIVersion": V1, "objects": list(objects) or [vote()]}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "ConversionReview",
        "request": body | request,
    }


@pytest.mark.parametrize("path", ["/convert", "/convert?timeout=30s", "/convert-voteconfig"])
async def test_objects_are_converted_to_the_requested_version(webhook, path):
    """The order is kept, and objects that have the version are unchanged. No policy is needed."""
    webhook.policies.engine = None
    there = vote("there") | {"apiVersion": V1, "spec": {}}
    found = await webhook.post(review(vote("one"), there, vote("two")), path)
    assert found.status == 200
    assert json.loads(found.body) | {"response": None} == {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "ConversionReview",
        "response": None,
    }
    spec = {"options": [{"id": "a", "label": "Cats"}], "poll": {"question": "Which?"}}
    assert found.response == {
        "uid": "u-1",
        "result": {"status": "Success"},
        "convertedObjects": [
            vote("one") | {"apiVersion": V1, "spec": spec},
            there,
            vote("two") | {"apiVersion": V1, "spec": spec},
        ],
    }
    assert (
        webhook.counted("controller_runtime_webhook_requests_total", webhook="convert", code="200")
        == 1
    )


BAD_OBJECTS = [
    (
        review(vote(), vote("bad", options="?")),
        "VoteConfig shop/bad: spec.options: must be a list of objects",
    ),
    (review({"kind": "Pod"}), f"Pod: Pod of None cannot be converted to {V1}"),
    (
        review(desiredAPIVersion="voting.schoolofdevops.com/v9"),
        "VoteConfig shop/pets: VoteConfig has no version v9; it has v1, v1alpha1",
    ),
    (review(desiredAPIVersion=None), "request.desiredAPIVersion: Expected `str`, got `null`"),
    (review(objects={}), "request.objects: Expected `array`, got `object`"),
    (review(7), "request.objects[0]: must be an object"),
    (
        review(vote() | {"metadata": None}),
        "VoteConfig: metadata: must be an object, and so must its annotations",
    ),
    (
        review(
            vote(),
            vote(deep=functools.reduce(lambda below, _: [below], range(300), list[Any]())),
        ),
        "what became of the objects is no JSON: Recursion limit reached",
    ),
]


async def test_one_bad_object_fails_the_review(webhook):
    """The result has its name and the error; the uid is echoed, and nothing is converted."""
    for bad, message in BAD_OBJECTS:
        response = (await webhook.post(bad, "/convert")).response
        assert response == {
            "uid": "u-1",
            "convertedObjects": [],
            "result": {"status": "Failure", "message": message},
        }


BAD_BODIES = [
    (b"", "the body is not JSON"),
    (b'{"x":' + b"[" * 100_000, "the body is not JSON"),
    (b"[]", "the body: Expected `object`"),
    (
        b'{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}',
        "only apiextensions.k8s.io/v1 Conv",
    ),
    (
        b'{"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview"}',
        "request: missing",
    ),
    (json.dumps(review(uid=7)).encode(), "request.uid"),
]


async def test_a_body_that_is_no_review_gets_400(webhook):
    """The webhook keeps serving."""
    for body, text in BAD_BODIES:
        async with webhook.connected() as wire:
            answered = await wire.post(body, "/convert")
            assert (answered.status, text in answered.body.decode()) == (400, True), body[:200]
            converted = (await wire.post(review(), "/convert")).response
            assert converted["result"] == {"status": "Success"}


async def test_invalid_requests_are_rejected_as_on_the_other_paths(webhook):
    """These are a large body, another content type and another method."""
    assert (await webhook.post(review(), "/convert", Content_Type="text/plain")).status == 415
    assert (await webhook.post(b"", "/convert", Content_Length=str(9 * 1024 * 1024))).status == 413
    async with webhook.connected() as wire:
        await wire.send(b"GET /convert HTTP/1.1\r\nHost: x\r\n\r\n")
        assert (await wire.answer()).status == 405


KEPT = {
    "voting.schoolofdevops.com/v1": '{"options": [{"id": "a", "description": "Purr."}], "poll": {"x": 1}}'
}
TEXTS = st.text(CHARACTERS, max_size=5)
SCALARS = (
    st.none() | st.booleans() | st.integers(-1, 2**64 - 1) | st.floats(allow_nan=False) | TEXTS
)
VALUES = SCALARS | st.lists(SCALARS, max_size=2) | st.dictionaries(TEXTS, SCALARS, max_size=2)
KEPT_VALUES = VALUES.map(json.dumps)


def places(value, path=()):
    """Yield the path of everything in a value."""
    yield path
    for key, item in (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    ):
        yield from places(item, (*path, key))


@settings(max_examples=30)
@given(st.sampled_from([V1, OLD]), st.data())
def test_any_value_anywhere_is_answered(desired, data):
    """With any value in any place, the review is rejected, failed or converted, and nothing is raised."""
    new = {"poll": {"question": "Which?", "x": 1}, "options": [{"id": "a", "description": "Purr."}]}
    object = vote() if desired == V1 else vote() | {"apiVersion": V1, "spec": new}
    object["metadata"]["annotations"] = dict(KEPT)
    sent = review(object, desiredAPIVersion=desired)
    *above, last = data.draw(
        st.sampled_from(sorted(filter(None, places(sent)), key=repr)), label="path"
    )
    inner = changed = copy.deepcopy(sent)
    for step in above:
        inner = inner[step]
    inner[last] = data.draw(VALUES | KEPT_VALUES, label="value")
    try:
        response = json.loads(answer(json.dumps(changed).encode())[0])["response"]
    except NotAReviewError:
        return
    assert (response["result"]["status"] == "Success") or response["convertedObjects"] == []
