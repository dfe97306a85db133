"""Writes of hand-written controllers: only what would change, and only of their own objects."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from controller.runtime.hand_written import apply, apply_status
from controller.runtime.observed import controller_reference
from controller.runtime.status import condition
from controller.runtime.types import TerminalError
from gatewright.testing.fake_apiserver import FakeApiServer
from kube.client import Client
from kube.errors import Conflict
from kube.resource import JsonObject, Resource
from tests.controller.runtime.conftest import CONFIGMAP, NAMESPACE

THING = Resource("test.example", "v1", "things", "Thing")
MANAGER = "by-hand"


@pytest.fixture
async def client(server: FakeApiServer) -> AsyncIterator[Client]:
    """A client of the fake API server."""
    async with Client(server.endpoint) as client:
        yield client


@pytest.fixture
def thing(server: FakeApiServer) -> JsonObject:
    """A Thing."""
    metadata = {"name": "thing", "namespace": NAMESPACE}
    return server.create(THING, {"metadata": metadata, "spec": {}})


def desired(**data: str) -> JsonObject:
    """A ConfigMap."""
    return {"metadata": {"name": "config", "namespace": NAMESPACE}, "data": data}


async def send(client: Client, thing: JsonObject, current: Any, **data: str) -> JsonObject:
    """Apply a ConfigMap of the Thing."""
    owner = controller_reference(THING, thing)
    return await apply(
        client, CONFIGMAP, desired(**data), current, field_manager=MANAGER, owner=owner
    )


async def test_an_object_that_is_as_desired_costs_nothing(
    server: FakeApiServer, client: Client, thing: JsonObject
) -> None:
    """It is created, changed, repaired, and fields that leave it are removed: a write each."""
    stored = await send(client, thing, None, a="1", b="2")
    assert await send(client, thing, stored, a="1", b="2") == stored
    assert len(server.requests.writes) == 1
    stored = await send(client, thing, stored, a="1")
    assert stored["data"] == {"a": "1"}
    edited = server.change(CONFIGMAP, "config", {"data": {"a": "9", "c": "3"}}, NAMESPACE)
    stored = await send(client, thing, edited, a="1")
    assert stored["data"] == {"a": "1", "c": "3"}
    assert await send(client, thing, stored, a="1") == stored
    assert len(server.requests.writes) == 3


async def test_an_object_that_the_cache_lacks_is_a_conflict(
    server: FakeApiServer, client: Client, thing: JsonObject
) -> None:
    """Nothing of it changes."""
    server.create(CONFIGMAP, desired(other="1"))
    with pytest.raises(Conflict):
        await send(client, thing, None, a="1")
    config = server.get(CONFIGMAP, "config", NAMESPACE)
    assert config is not None
    assert config["data"] == {"other": "1"}


async def test_objects_of_others_are_not_written(
    server: FakeApiServer, client: Client, thing: JsonObject
) -> None:
    """The message names the owner, or says that there is none."""
    found = server.create(CONFIGMAP, desired(other="1"))
    with pytest.raises(TerminalError, match="ConfigMap config exists and has no owner"):
        await send(client, thing, found, a="1")
    metadata = {"name": "other", "namespace": NAMESPACE}
    other = server.create(THING, {"metadata": metadata, "spec": {}})
    references = {"ownerReferences": [controller_reference(THING, other)]}
    owned = server.change(CONFIGMAP, "config", {"metadata": references}, NAMESPACE)
    with pytest.raises(TerminalError, match="belongs to Thing other; rename one of them"):
        await send(client, thing, owned, a="1")
    assert server.requests.writes == []


async def test_a_status_is_written_when_it_changes(
    server: FakeApiServer, client: Client, thing: JsonObject
) -> None:
    """Its conditions keep the time of their last transition, and those of others stay."""

    async def report(holds: bool) -> JsonObject:
        current = server.get(THING, "thing", NAMESPACE)
        assert current is not None
        status = {"size": 1, "conditions": [condition("Ready", holds, "Counted", "all")]}
        await apply_status(client, THING, current, status, field_manager=MANAGER)
        stored = server.get(THING, "thing", NAMESPACE)
        assert stored is not None
        return dict(stored["status"])

    first = await report(True)
    assert first["observedGeneration"] == 1
    added = {"type": "Reviewed", "status": "True", "reason": "ByHand", "message": ""}
    conditions = [*first["conditions"], added]
    server.change(THING, "thing", {"status": {"conditions": conditions}}, NAMESPACE, "status")
    second = await report(True)
    assert [each["type"] for each in second["conditions"]] == ["Ready", "Reviewed"]
    assert len(server.requests.writes) == 1
    third = await report(False)
    assert [each["status"] for each in third["conditions"]] == ["False", "True"]
    assert len(server.requests.writes) == 2
