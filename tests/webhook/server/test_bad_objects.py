"""Malformed objects, judged over HTTP by the production policies."""

import asyncio
import json
from pathlib import Path

import pytest

from config.documents import read_documents
from tests.waiting import WITHIN
from tests.webhook.server.conftest import review
from webhook.engine import Engine
from webhook.policy_sets.catalogue import catalogue
from webhook.policy_sets.policy_set import load

ENGINE = Engine(load(read_documents(Path("config/policies/production.yaml")), catalogue()))
CONTAINER = {"name": "app", "image": "registry.company.com/app:1", "resources": {}}


def pod(**spec) -> dict:
    """Return a review of a pod."""
    object = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}
    return review(namespace="production", object=object)


MALFORMED = [
    ({"containers": None}, None),
    ({"containers": None, "initContainers": [CONTAINER]}, 403),
    ({"containers": []}, None),
    ({"containers": "app"}, 400),
    ({"containers": {}}, 400),
    ({"containers": [None]}, 400),
    ({"containers": ["app"]}, 400),
    ({"containers": [CONTAINER | {"image": 7}]}, 400),
    ({"containers": [CONTAINER | {"resources": []}]}, 400),
    ({"containers": [CONTAINER], "initContainers": "app"}, 400),
    ({"containers": [CONTAINER] * 1000}, 403),
]


@pytest.mark.parametrize("path", ["/validate", "/mutate"])
async def test_a_malformed_pod_is_denied_with_the_field(start, path):
    """Null is absent; a wrong type is a denial with code 400 that names the field, never an internal error."""
    async with start(ENGINE) as webhook, asyncio.timeout(WITHIN):
        for spec, code in MALFORMED:
            response = (await webhook.post(pod(**spec), path)).response
            assert response["uid"] == "u-1", spec
            if path == "/validate":
                assert response.get("status", {}).get("code") == code, spec
            assert response.get("status", {}).get("code") != 500, spec


@pytest.mark.parametrize("depth", [100, 500, 1000])
async def test_deep_nesting_is_judged_or_rejected(start, depth):
    """A body that the decoder rejects gets 400; the webhook continues to serve."""
    nested = "[" * depth + "]" * depth
    body = json.dumps(pod(containers=[CONTAINER])).replace('"p"', f'"p", "deep": {nested}').encode()
    async with start(ENGINE) as webhook:
        assert (await webhook.post(body)).status in (200, 400)
        assert (await webhook.post(pod(containers=[]))).status == 200


async def test_many_violations_are_all_in_the_answer(start):
    """A thousand containers have a thousand violations."""
    async with start(ENGINE) as webhook:
        containers = [CONTAINER | {"name": f"c{number}"} for number in range(1000)]
        response = (await webhook.post(pod(containers=containers))).response
    assert len(response["status"]["message"].splitlines()) > 1000
