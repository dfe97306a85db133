"""The fake client answers as an API server does: what is shown here is shown of both."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from controller.runtime.fake_client import FakeClient
from kube.client import Client
from kube.errors import AlreadyExists, Conflict, NotFound
from tests.controller.runtime.conftest import CONFIGMAP, NAMESPACE
from tests.fakes.apiserver import FakeApiServer
from tests.kube.conftest import DEPLOYMENT


@pytest.fixture(params=["fake client", "fake API server"])
async def client(request: pytest.FixtureRequest) -> AsyncIterator[Client]:
    """The client without a server, and the real client of the fake server, which in turn is held to the real one."""
    if request.param == "fake client":
        yield FakeClient()
    else:
        async with FakeApiServer() as server, Client(server.endpoint) as client:
            yield client


def deployment(replicas: int = 1, **metadata: Any) -> dict[str, Any]:
    """A Deployment with two containers."""
    return {
        "metadata": {"name": "a", "namespace": NAMESPACE, **metadata},
        "spec": {"replicas": replicas, "template": {"spec": {"containers": [{"name": "x"}, {"name": "y"}]}}},
    }


async def test_what_is_created_can_be_read(client: Client) -> None:
    """With uid, version, generation, time, apiVersion and kind."""
    created = await client.create(DEPLOYMENT, deployment())
    assert created == await client.get(DEPLOYMENT, "a", NAMESPACE)
    assert (created["apiVersion"], created["kind"], created["metadata"]["generation"]) == ("apps/v1", "Deployment", 1)
    assert {"uid", "resourceVersion", "creationTimestamp"} < created["metadata"].keys()
    assert [each["metadata"]["name"] async for each in client.list(DEPLOYMENT, NAMESPACE)] == ["a"]


async def test_a_name_is_taken_once(client: Client) -> None:
    """A second create of a name is refused."""
    await client.create(DEPLOYMENT, deployment())
    with pytest.raises(AlreadyExists):
        await client.create(DEPLOYMENT, deployment())


async def test_what_is_not_there_is_not_found(client: Client) -> None:
    """By all verbs that need an object."""
    with pytest.raises(NotFound):
        await client.get(DEPLOYMENT, "a", NAMESPACE)
    with pytest.raises(NotFound):
        await client.patch(DEPLOYMENT, "a", {"spec": {}}, NAMESPACE)
    with pytest.raises(NotFound):
        await client.delete(DEPLOYMENT, "a", NAMESPACE)


async def test_an_apply_creates_and_then_merges(client: Client) -> None:
    """Lists of named things are merged by name; the generation counts changes of the spec."""
    await client.apply(DEPLOYMENT, deployment(), field_manager="m")
    change = {"metadata": {"name": "a", "namespace": NAMESPACE}, "spec": {"replicas": 2}}
    applied = await client.apply(DEPLOYMENT, change, field_manager="other", force=True)
    assert [each["name"] for each in applied["spec"]["template"]["spec"]["containers"]] == ["x", "y"]
    assert (applied["spec"]["replicas"], applied["metadata"]["generation"]) == (2, 2)


async def test_an_apply_that_changes_nothing_keeps_the_version(client: Client) -> None:
    """The same applied twice is one change."""
    first = await client.apply(DEPLOYMENT, deployment(), field_manager="m")
    second = await client.apply(DEPLOYMENT, deployment(), field_manager="m")
    assert first["metadata"]["resourceVersion"] == second["metadata"]["resourceVersion"]


async def test_another_uid_or_version_is_a_conflict(client: Client) -> None:
    """Writes that mean one very object change no other."""
    stored = await client.create(DEPLOYMENT, deployment())
    with pytest.raises(Conflict):
        await client.apply(DEPLOYMENT, deployment(uid="x"), field_manager="m", force=True)
    with pytest.raises(Conflict):
        await client.delete(DEPLOYMENT, "a", NAMESPACE, uid="x")
    await client.patch(DEPLOYMENT, "a", {"spec": {"replicas": 2}}, NAMESPACE)
    with pytest.raises(Conflict):
        await client.replace(DEPLOYMENT, stored)


async def test_status_and_spec_are_apart(client: Client) -> None:
    """A write of the status leaves the spec and its generation alone."""
    await client.create(DEPLOYMENT, deployment())
    change = {"metadata": {"name": "a", "namespace": NAMESPACE}, "spec": {"replicas": 9}, "status": {"replicas": 1}}
    written = await client.apply(DEPLOYMENT, change, field_manager="m", subresource="status", force=True)
    assert (written["spec"]["replicas"], written["status"], written["metadata"]["generation"]) == (
        1,
        {"replicas": 1},
        1,
    )


async def test_a_finalizer_holds_what_is_deleted(client: Client) -> None:
    """It is marked, and goes with its last finalizer."""
    about = {"name": "a", "namespace": NAMESPACE, "finalizers": ["test.example/f"]}
    await client.create(CONFIGMAP, {"metadata": about})
    await client.delete(CONFIGMAP, "a", NAMESPACE)
    assert "deletionTimestamp" in (await client.get(CONFIGMAP, "a", NAMESPACE))["metadata"]
    await client.patch(CONFIGMAP, "a", {"metadata": {"finalizers": None}}, NAMESPACE)
    with pytest.raises(NotFound):
        await client.get(CONFIGMAP, "a", NAMESPACE)
