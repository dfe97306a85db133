"""The fake client answers as an API server does: what is shown here is shown of both."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from controller.fake_apiserver import FakeApiServer
from controller.runtime.fake_client import FakeClient
from kube.client import Client
from kube.errors import AlreadyExists, Conflict, Invalid, NotFound
from tests.controller.runtime.conftest import CONFIGMAP, NAMESPACE
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


async def names(client: Client, **selectors: str) -> list[str]:
    """The names of the Deployments that selectors choose."""
    return [each["metadata"]["name"] async for each in client.list(DEPLOYMENT, NAMESPACE, **selectors)]


@pytest.mark.parametrize(
    ("selector", "chosen"),
    [
        ("app=x", ["a"]),
        ("app==x,tier", ["a"]),
        ("app!=x", ["b", "c"]),
        ("app in (x, y)", ["a", "b"]),
        ("app notin (x, y)", ["c"]),
        ("app", ["a", "b"]),
        ("!app", ["c"]),
        ("tier=front,app in (x,y)", ["a"]),
    ],
)
async def test_labels_select(client: Client, selector: str, chosen: list[str]) -> None:
    """By equality, by sets and by being there at all."""
    for name, labels in {"a": {"app": "x", "tier": "front"}, "b": {"app": "y"}, "c": {}}.items():
        await client.create(DEPLOYMENT, deployment(name=name, labels=labels))
    assert await names(client, labels=selector) == chosen


async def test_fields_select(client: Client) -> None:
    """By name, as a field selector may."""
    for name in ("a", "b"):
        await client.create(DEPLOYMENT, deployment(name=name))
    assert await names(client, fields="metadata.name=b") == ["b"]
    assert await names(client, fields=f"metadata.name!=b,metadata.namespace={NAMESPACE}") == ["a"]


async def test_a_json_patch_changes_what_it_names(client: Client) -> None:
    """Its operations, in order; where a test fails nothing happens."""
    await client.create(DEPLOYMENT, deployment())
    change = [
        {"op": "test", "path": "/spec/replicas", "value": 1},
        {"op": "replace", "path": "/spec/replicas", "value": 2},
    ]
    assert (await client.patch(DEPLOYMENT, "a", change, NAMESPACE))["spec"]["replicas"] == 2
    with pytest.raises(Invalid):
        await client.patch(DEPLOYMENT, "a", change, NAMESPACE)


async def test_a_merge_patch_replaces_lists(client: Client) -> None:
    """Unlike an apply it does not know what the items of a list are told apart by."""
    await client.create(DEPLOYMENT, deployment())
    patch = {"spec": {"template": {"spec": {"containers": [{"name": "z"}]}}}}
    patched = await client.patch(DEPLOYMENT, "a", patch, NAMESPACE)
    assert [each["name"] for each in patched["spec"]["template"]["spec"]["containers"]] == ["z"]
