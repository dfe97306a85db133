"""Look-ups of namespace labels for policies."""

import asyncio

import pytest

from gatewright.testing.fake_apiserver import FakeApiServer
from kube.client import Client
from kube.errors import ApiError, NotFound
from tests.webhook.server.conftest import answered
from webhook.engine import Attributes
from webhook.server.cluster_data import NAMESPACES, LookUps

LABELS = {"kubernetes.io/metadata.name": "shop", "environment": "production"}


def request(namespace: str) -> Attributes:
    """Make a request about something in a namespace."""
    return Attributes("u", "CREATE", "", "v1", "Pod", "", "pods", namespace=namespace)


@pytest.fixture
async def server():
    """An API server with one labelled namespace."""
    async with FakeApiServer() as fake:
        fake.create(NAMESPACES, {"metadata": {"name": "shop", "labels": LABELS}})
        yield fake


@pytest.fixture
async def client(server):
    """A client of it."""
    async with Client(server.endpoint) as connected:
        yield connected


async def test_labels_come_from_the_watch_without_a_request(server, client):
    """Watched namespaces need no request."""
    look_ups = LookUps(client)
    watching = asyncio.create_task(look_ups.run())
    await look_ups._stores[NAMESPACES].synced.wait()
    server.requests.clear()
    assert await answered(look_ups.namespace_labels(request("shop"))) == LABELS
    assert (await answered(look_ups.namespace(request("shop"))))["status"] == {"phase": "Active"}
    assert server.requests.log == []
    watching.cancel()
    await asyncio.wait([watching])


async def test_an_unknown_namespace_is_requested(server, client):
    """One live GET is sent."""
    labels = LookUps(client).namespace_labels
    assert await answered(labels(request("shop"))) == LABELS
    assert await answered(labels(request("default"))) == server.get(NAMESPACES, "default")[
        "metadata"
    ].get("labels", {})
    assert len(server.requests.log) == 2


async def test_a_namespace_that_does_not_exist_is_an_error(client):
    """It is not treated as one without labels."""
    with pytest.raises(NotFound):
        await answered(LookUps(client).namespace_labels(request("nowhere")))


async def test_an_api_server_that_fails_is_an_error(server, client):
    """The caller decides."""
    server.fail(1, 503)
    with pytest.raises(ApiError):
        await answered(LookUps(client).namespace_labels(request("shop")))


async def test_cluster_scoped_objects_have_no_namespace_labels(server, client):
    """No request is sent, neither for their labels nor for the object."""
    look_ups = LookUps(client)
    assert await answered(look_ups.namespace_labels(request(""))) == {}
    assert look_ups.namespace(request("")) is None
    assert server.requests.log == []
