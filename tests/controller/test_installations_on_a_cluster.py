"""Two installations of the same kind on a real control plane: the older one writes, the other says so."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from controller.runtime import installations
from controller.runtime.events import EVENT
from controller.runtime.leader import LEASE, LeaseSettings
from controller.runtime.plan import Apply, Plan, Step
from controller.runtime.status import is_ready
from gatewright.kind import Observed, PlannedKind, Status
from kube import credentials
from kube.client import Client
from tests.controller.kinds_on_a_cluster import (
    CONFIGMAP,
    NOTE,
    Note,
    controlling,
    crd,
    note,
)
from tests.controller.observer import Observer, observing
from tests.controlplane.audit import WRITES
from tests.controlplane.plane import ControlPlane

pytestmark = pytest.mark.controlplane

NOTES = NOTE.resource


def shout(note: Note, observed: Observed, now: Any) -> Plan:
    """Another version of the planner, which would fight with the first one."""
    metadata = {"name": note.name, "namespace": note.namespace}
    data = {"text": note.spec.text.upper()}
    configmap = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
    return Plan((Step("configmap", [Apply(configmap)]),), Status())


OTHER_VERSION = PlannedKind(Note, plan=shout, owns=(CONFIGMAP,))


def lease(namespace: str, name: str) -> LeaseSettings:
    """A Lease that is tried for often; who ends releases it."""
    return LeaseSettings(namespace, name, duration=15, renew_deadline=10, retry_period=0.4)


@pytest.fixture
async def client(control_plane: ControlPlane) -> AsyncIterator[Client]:
    """An admin client; the CRD of Notes is installed."""
    definition = json.dumps(crd())
    control_plane.kubectl("apply", "--server-side", "-f", "-", input=definition)
    control_plane.kubectl("wait", "--for=condition=Established", "crd/notes.notes.example.com")
    endpoint = await credentials.load(control_plane.kubeconfig, environment={})
    async with Client(endpoint, user_agent="the-test") as client:
        yield client


@pytest.fixture
async def observer(client: Client, namespace: str) -> AsyncIterator[Observer]:
    """Observes the test's namespace."""
    async with observing(client, namespace, [NOTES, CONFIGMAP, EVENT, LEASE]) as observer:
        yield observer


def has_text(text: str) -> Any:
    """Return a predicate of a ConfigMap with a text."""
    return lambda each: each["data"]["text"] == text


async def until_older(client: Client, observer: Observer, lease: str) -> None:
    """Wait until an object that is created now is younger than a Lease, by whole seconds."""
    created = (await observer.until(LEASE, lease))["metadata"]["creationTimestamp"]
    while True:
        about = {"generateName": "later-", "namespace": observer.namespace}
        later = await client.create(CONFIGMAP, {"metadata": about}, dry_run=True)
        if later["metadata"]["creationTimestamp"] > created:
            return


async def test_the_older_installation_writes_and_the_other_one_says_so(
    control_plane: ControlPlane,
    client: Client,
    observer: Observer,
    namespace: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The second one writes nothing until the first one ends, and nothing once it is back."""
    monkeypatch.setattr(installations, "INTERVAL", 0.5)
    mark = await asyncio.to_thread(control_plane.audit_mark)
    older, younger = lease(namespace, "older"), lease(namespace, "younger")
    async with controlling(control_plane, [namespace], lease=older, identity="first"):
        await client.create(NOTES, note(namespace, "a"))
        await observer.until(NOTES, "a", lambda each: is_ready(each.get("status") or {}))
        await until_older(client, observer, "older")
        async with controlling(
            control_plane, [namespace], kind=OTHER_VERSION, lease=younger, identity="second"
        ) as second:
            event = await observer.until_any(
                EVENT, lambda each: each["reason"] == "AnotherController"
            )
            await client.create(NOTES, note(namespace, "b"))
            await observer.until(NOTES, "b", lambda each: is_ready(each.get("status") or {}))
            assert second.installations is not None
            assert second.installations.precedes(NOTES, namespace)
    written = await asyncio.to_thread(control_plane.audit_events, mark, verb=WRITES)
    by_second = {each["objectRef"]["resource"] for each in written if each["userAgent"] == "second"}
    assert by_second == {"events"}
    assert event["regarding"]["kind"] == "Lease"
    assert event["regarding"]["name"] == "younger"
    assert f"Lease {namespace}/older, reconciles notes.notes.example.com" in event["note"]


async def test_the_other_installation_takes_over_and_gives_back(
    control_plane: ControlPlane,
    client: Client,
    observer: Observer,
    namespace: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its plans are applied while the older one is away."""
    monkeypatch.setattr(installations, "INTERVAL", 0.5)
    older, younger = lease(namespace, "older"), lease(namespace, "younger")
    async with controlling(control_plane, [namespace], lease=older, identity="first"):
        await client.create(NOTES, note(namespace, "a"))
        await observer.until(CONFIGMAP, "a", has_text("hello"))
        await until_older(client, observer, "older")
    async with controlling(control_plane, [namespace], kind=OTHER_VERSION, lease=younger):
        await observer.until(CONFIGMAP, "a", has_text("HELLO"))
        async with controlling(control_plane, [namespace], lease=older, identity="first"):
            await observer.until(CONFIGMAP, "a", has_text("hello"))
            await observer.until_any(EVENT, lambda each: each["reason"] == "AnotherController")
            await client.create(NOTES, note(namespace, "b"))
            await observer.until(NOTES, "b", lambda each: is_ready(each.get("status") or {}))
        await observer.until(CONFIGMAP, "b", has_text("HELLO"))
