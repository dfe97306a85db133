"""On a real API server: thousands of edits at once, and an API that is removed under living objects."""

import asyncio
import os
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from copy import deepcopy
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

import controller.runtime.conflict_backoff
import kube.backoff
from controller.reconcilers.resources import DEPLOYMENT, SERVICE
from controller.reconcilers.webapp import WEBAPP
from controller.runtime.kind import PlannedKind
from controller.runtime.manager import Manager
from kube import credentials
from kube.client import Client
from kube.resource import CRD as CRDS
from kube.resource import JsonObject, Resource
from tests.controller.observer import observing
from tests.controller.properties.test_edits import field
from tests.controller.properties.test_finalizers import DECLARED, FINALIZER, LEASE, plan
from tests.controller.runtime.conftest import CONFIGMAP, CRD, kind_of
from tests.controller.webapps import webapp
from tests.controlplane.audit import WRITES
from tests.controlplane.plane import ControlPlane

pytestmark = pytest.mark.controlplane("etcd", "kube-apiserver")

WEBAPPS = WEBAPP.resource
NAMES = [f"shop-{number}" for number in range(10)]
EDITS = int(os.environ.get("EDITS", "500"))  # the workflow of the forge makes ten thousand
AT_ONCE = 16


@asynccontextmanager
async def controlling(
    plane: ControlPlane, place: str, kind: PlannedKind[Any]
) -> AsyncIterator[Manager]:
    """Run a controller of one kind in one namespace, as a separate user."""
    kubeconfig = plane.certificate_kubeconfig(f"controller-of-{place}", "system:masters")
    endpoint = await credentials.load(kubeconfig, environment={})
    manager = Manager(endpoint, CollectorRegistry(), identity="the-test", namespaces=[place])
    manager.add_kind(kind)
    stop = asyncio.Event()
    async with asyncio.timeout(120 + EDITS / 10), asyncio.TaskGroup() as group:
        group.create_task(manager.run(stop))
        try:
            await manager.caches.wait_synced()
            yield manager
        finally:
            stop.set()


class Editors:
    """The writers in addition to the controller, each with its own field.

    The last value of each must be there in the end.
    """

    def __init__(self, client: Client, place: str) -> None:
        self.client = client
        self.place = place
        self.chance = random.Random(5)
        self.locks: dict[tuple[Resource, str, str], asyncio.Lock] = {}
        self.written: dict[tuple[Resource, str, str], Any] = {}

    async def run(self, edits: int) -> None:
        """Make this many edits sequentially, while others run concurrently."""
        for _ in range(edits):
            name, number = self.chance.choice(NAMES), self.chance.randrange(1, 10**6)
            await self.chance.choice(
                [self.user, self.user, self.autoscaler, self.labeller, self.other, self.neighbour]
            )(name, number)

    async def write(
        self, resource: Resource, name: str, path: str, value: Any, send: Awaitable[JsonObject]
    ) -> None:
        """Write a field; writes of the same field are sequential, so that the last one is known."""
        async with self.locks.setdefault((resource, name, path), asyncio.Lock()):
            await send
            self.written[resource, name, path] = value

    async def user(self, name: str, number: int) -> None:
        """Change the spec."""
        send = self.client.patch(WEBAPPS, name, {"spec": {"image": f"nginx:{number}"}}, self.place)
        await self.write(WEBAPPS, name, "spec.image", f"nginx:{number}", send)

    async def autoscaler(self, name: str, number: int) -> None:
        """Scale, as an HPA does."""
        replicas = number % 10 + 1
        scale = {"spec": {"replicas": replicas}}
        send = self.client.patch(WEBAPPS, name, scale, self.place, subresource="scale")
        await self.write(WEBAPPS, name, "spec.replicas", replicas, send)

    async def labeller(self, name: str, number: int) -> None:
        """Label the object."""
        send = self.client.patch(
            WEBAPPS, name, {"metadata": {"labels": {"theirs": str(number)}}}, self.place
        )
        await self.write(WEBAPPS, name, "metadata.labels.theirs", str(number), send)

    async def other(self, name: str, number: int) -> None:
        """Write a condition, as another controller does."""
        condition = {"type": "Theirs", "status": "True", "reason": f"R{number}", "message": ""}
        condition["lastTransitionTime"] = "2026-01-01T00:00:00Z"
        object: JsonObject = {
            "metadata": {"name": name, "namespace": self.place},
            "status": {"conditions": [condition]},
        }
        send = self.client.apply(
            WEBAPPS, object, field_manager="other-controller", force=True, subresource="status"
        )
        await self.write(WEBAPPS, name, "Theirs", f"R{number}", send)

    async def neighbour(self, name: str, number: int) -> None:
        """Annotate a child."""
        child = self.chance.choice([DEPLOYMENT, SERVICE])
        send = self.client.patch(
            child, name, {"metadata": {"annotations": {"theirs": str(number)}}}, self.place
        )
        await self.write(child, name, "metadata.annotations.theirs", str(number), send)


def said(object: JsonObject, path: str) -> Any:
    """Return the value of a field, or the reason of a condition."""
    if path != "Theirs":
        return field(object, path)
    return next(
        (each["reason"] for each in object["status"]["conditions"] if each["type"] == path), None
    )


async def test_no_writer_loses_its_fields(
    plane: ControlPlane, place: str, user: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sixteen concurrent editors and the controller write: in the end each field has its owner's last value."""
    monkeypatch.setattr(controller.runtime.conflict_backoff, "REPAIRS_WINDOW", 0.0)
    async with (
        controlling(plane, place, WEBAPP),
        observing(user, place, [WEBAPPS, DEPLOYMENT, SERVICE]) as observer,
    ):
        for name in NAMES:
            await user.create(WEBAPPS, webapp(place, name))
        for name in NAMES:
            await observer.until(DEPLOYMENT, name)
            await observer.until(SERVICE, name)
        editors = Editors(user, place)
        async with asyncio.TaskGroup() as group:
            for _ in range(AT_ONCE):
                group.create_task(editors.run(EDITS // AT_ONCE))
        for name in NAMES:
            spec = (await user.get(WEBAPPS, name, place))["spec"]
            await observer.until(DEPLOYMENT, name, made_for(spec))
            await observer.until(
                WEBAPPS,
                name,
                lambda each: each["status"]["observedGeneration"] == each["metadata"]["generation"],
            )
        stored = {
            (resource, name): await user.get(resource, name, place)
            for resource, name, _ in editors.written
        }
    found = {
        (resource, name, path): said(stored[resource, name], path)
        for resource, name, path in editors.written
    }
    assert found == editors.written
    assert len(found) > 5 * len(NAMES)


def made_for(spec: JsonObject) -> Callable[[JsonObject], bool]:
    """Return whether a Deployment matches a WebApp's spec."""

    def holds(deployment: JsonObject) -> bool:
        (container,) = deployment["spec"]["template"]["spec"]["containers"]
        return (deployment["spec"]["replicas"], container["image"]) == (
            spec["replicas"],
            spec["image"],
        )

    return holds


async def test_an_api_that_is_removed_takes_its_objects_along(
    plane: ControlPlane, place: str, user: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Objects with finalizers are cleaned up before their CRD is deleted.

    When the CRD is recreated, the controller reconciles again.
    """
    monkeypatch.setattr(kube.backoff, "LONGEST", 0.5)
    kind = kind_of(plan, **DECLARED)
    await define(plane, user)
    async with (
        controlling(plane, place, kind) as manager,
        observing(user, place, [CONFIGMAP, LEASE]) as observer,
    ):
        things, gone = manager.caches.of(kind.resource), asyncio.Event()
        things.subscribe(lambda change: gone.set() if change.new is None else None)
        await user.create(LEASE, {"metadata": {"name": "thing", "namespace": place}})
        thing = {"metadata": {"name": "thing", "namespace": place}, "spec": {"size": 1}}
        await user.create(kind.resource, thing)
        await observer.until(CONFIGMAP, "thing")
        held = await user.get(kind.resource, "thing", place)
        assert held["metadata"]["finalizers"] == [FINALIZER]
        await user.delete(CRDS, CRD["metadata"]["name"])
        await observer.until_gone(LEASE, "thing")
        await gone.wait()
        await asyncio.to_thread(
            plane.kubectl, "wait", "--for=delete", f"crd/{CRD['metadata']['name']}"
        )
        assert list(things) == []
        mark = await asyncio.to_thread(plane.audit_mark)
        await user.delete(CONFIGMAP, "thing", place)  # there is no garbage collector here
        await define(plane, user)
        await user.create(kind.resource, thing)
        await observer.until(CONFIGMAP, "thing")
        assert manager.unready() is None
        events = await asyncio.to_thread(
            plane.audit_events, mark, user=f"controller-of-{place}", verb=WRITES
        )
    assert "patch things" in {f"{each['verb']} {each['objectRef']['resource']}" for each in events}
    await user.delete(kind.resource, "thing", place)


async def define(plane: ControlPlane, user: Client) -> None:
    """Create the CRD of Things, and wait until they are served."""
    await user.create(CRDS, deepcopy(CRD))
    await asyncio.to_thread(
        plane.kubectl, "wait", "--for=condition=Established", f"crd/{CRD['metadata']['name']}"
    )
