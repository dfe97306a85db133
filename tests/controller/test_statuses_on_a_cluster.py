"""On a real control plane: statuses that a user overwrites, and CRDs older than the controller."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from copy import deepcopy
from typing import Any

import pytest

from controller.runtime.events import EVENT
from controller.runtime.status import is_ready
from kube import credentials
from kube.client import Client
from tests.controller.kinds_on_a_cluster import CONFIGMAP, NOTE, controlling, crd, note
from tests.controller.observer import Observer, observing
from tests.controlplane.plane import ControlPlane
from tests.waiting import eventually

pytestmark = pytest.mark.controlplane

NOTES = NOTE.resource


def install(plane: ControlPlane, definition: dict[str, Any]) -> None:
    """Apply a CRD, and wait until it is served."""
    plane.kubectl("apply", "--server-side", "-f", "-", input=json.dumps(definition))
    plane.kubectl("wait", "--for=condition=Established", "crd/notes.notes.example.com")


@pytest.fixture
def plane(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    """The shared control plane, with the CRD of Notes."""
    install(control_plane, crd())
    yield control_plane
    install(control_plane, crd())


@pytest.fixture
async def client(plane: ControlPlane) -> AsyncIterator[Client]:
    """An admin client, which acts as the user in a test."""
    endpoint = await credentials.load(plane.kubeconfig, environment={})
    async with Client(endpoint, user_agent="the-test") as client:
        yield client


@pytest.fixture
async def observer(client: Client, namespace: str) -> AsyncIterator[Observer]:
    """Observes the test's namespace."""
    async with observing(client, namespace, [NOTES, CONFIGMAP, EVENT]) as observer:
        yield observer


def has_status(object: dict[str, Any]) -> bool:
    """Return whether an object is Ready."""
    return is_ready(object.get("status") or {})


async def test_an_overwritten_status_is_written_again(
    plane: ControlPlane, client: Client, observer: Observer, namespace: str
) -> None:
    """`kubectl patch --subresource=status` does not last."""
    async with controlling(plane, [namespace]):
        await client.create(NOTES, note(namespace))
        await observer.until(NOTES, "first", has_status)
        patch = {"status": {"observedGeneration": 7, "conditions": []}}
        answer = await client.patch(NOTES, "first", patch, namespace, subresource="status")
        assert answer["status"]["observedGeneration"] == 7
        written = int(answer["metadata"]["resourceVersion"])
        restored = await observer.until(
            NOTES,
            "first",
            lambda each: int(each["metadata"]["resourceVersion"]) > written and has_status(each),
        )
    assert restored["status"]["observedGeneration"] == 1


async def test_a_status_is_fitted_to_an_older_crd(
    plane: ControlPlane,
    client: Client,
    observer: Observer,
    namespace: str,
) -> None:
    """The fields that the CRD lacks are left out, an event has the command, and an update heals at once."""
    old = deepcopy(crd())
    status = old["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]
    del status["properties"]["observedGeneration"]
    status.pop("default")
    await asyncio.to_thread(install, plane, old)

    async def has_every_field() -> bool:
        stored = await client.get(NOTES, "first", namespace)
        return stored["status"].get("observedGeneration") == 1

    async with controlling(plane, [namespace]) as manager:
        await client.create(NOTES, note(namespace))
        unversioned = await observer.until(NOTES, "first", has_status)
        event = await observer.until_any(EVENT, lambda each: each["reason"] == "OutdatedCRD")
        gauge = manager.metrics.outdated_crds.labels("Note")
        assert gauge._value.get() == 1
        await asyncio.to_thread(install, plane, crd())
        # Read and not watched: for a moment the API server prunes what an open watch delivers by
        # the schema that the watch began with.
        await eventually(has_every_field)
        await eventually(lambda: gauge._value.get() == 0)
    assert "observedGeneration" not in unversioned["status"]
    assert event["note"] == (
        "CustomResourceDefinition notes.notes.example.com is older than this controller and lacks "
        "status.observedGeneration, which stays unset; update it: "
        "gatewright crds Note | kubectl apply --server-side -f -"
    )


async def test_a_field_that_is_new_in_an_updated_crd_is_planned_with(
    plane: ControlPlane, client: Client, observer: Observer, namespace: str
) -> None:
    """Also one that is set while the API server still prunes it from what open watches deliver."""
    old = deepcopy(crd())
    spec = old["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    spec.update(properties={}, default={})
    await asyncio.to_thread(install, plane, old)
    async with controlling(plane, [namespace]):
        await client.create(NOTES, note(namespace))
        await observer.until(NOTES, "first", has_status)
        await asyncio.to_thread(install, plane, crd())

        async def is_set() -> bool:
            patch = {"spec": {"text": "new"}}
            answer = await client.patch(NOTES, "first", patch, namespace)
            return answer["spec"].get("text") == "new"

        await eventually(is_set)
        await observer.until(CONFIGMAP, "first", lambda each: each["data"]["text"] == "new")
