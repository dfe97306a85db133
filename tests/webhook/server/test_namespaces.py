"""Where the labels of a namespace come from."""

import asyncio

import pytest

from controller.fake_apiserver import FakeApiServer
from kube.client import Client
from kube.errors import ApiError, NotFound
from kube.store import Store
from kube.watch import Watch
from tests.webhook.server.conftest import answered
from webhook.engine import Attributes
from webhook.server.namespaces import NAMESPACE, Namespaces

LABELS = {"kubernetes.io/metadata.name": "shop", "environment": "production"}


def request(namespace: str) -> Attributes:
    """Make a request about something in a namespace."""
    return Attributes("u", "CREATE", "", "v1", "Pod", "", "pods", namespace=namespace)


@pytest.fixture
async def server():
    """An API server with one labelled namespace."""
    async with FakeApiServer() as fake:
        fake.create(NAMESPACE, {"metadata": {"name": "shop", "labels": LABELS}})
        yield fake


@pytest.fixture
async def client(server):
    """A client of it."""
    async with Client(server.endpoint) as connected:
        yield connected


async def test_labels_come_from_the_watch_without_a_request(server, client):
    """What is watched is not asked for."""
    store = Store(NAMESPACE)
    watching = asyncio.create_task(Watch(client, NAMESPACE, store).run())
    await store.synced.wait()
    server.requests.clear()
    assert await answered(Namespaces(client, store).labels(request("shop"))) == LABELS
    assert (await answered(Namespaces(client, store).object(request("shop"))))["status"] == {"phase": "Active"}
    assert server.requests.log == []
    watching.cancel()


async def test_a_namespace_that_was_not_seen_yet_is_asked_for(server, client):
    """One live GET, and no empty answer."""
    labels = Namespaces(client, Store(NAMESPACE)).labels
    assert await answered(labels(request("shop"))) == LABELS
    assert await answered(labels(request("default"))) == server.get(NAMESPACE, "default")["metadata"].get("labels", {})
    assert len(server.requests.log) == 2


async def test_a_namespace_that_does_not_exist_is_an_error(client):
    """It is not one without labels."""
    with pytest.raises(NotFound):
        await answered(Namespaces(client, Store(NAMESPACE)).labels(request("nowhere")))


async def test_an_api_server_that_fails_is_an_error(server, client):
    """Whoever asks decides what that means."""
    server.fail(1, 503)
    with pytest.raises(ApiError):
        await answered(Namespaces(client, Store(NAMESPACE)).labels(request("shop")))


async def test_what_is_in_no_namespace_has_no_labels(client):
    """Nothing is asked for a cluster-scoped object."""
    assert await answered(Namespaces(client, Store(NAMESPACE)).labels(request(""))) == {}
