"""A kind for tests, and a controller for it on a fake API server."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar

import pytest
from prometheus_client import CollectorRegistry
from pydantic import BaseModel

import controller.runtime.conflict_backoff
import controller.runtime.expectations
import controller.runtime.workqueue
import kube.backoff
from config.api.definition import Column, Definition
from controller.runtime.events import EVENT
from controller.runtime.kind import PlannedKind
from controller.runtime.manager import Manager
from controller.runtime.plan import Observed, Plan
from controller.runtime.types import ReconcileRequest
from gatewright.testing.fake_apiserver import FakeApiServer
from kube.resource import JsonObject, Resource
from tests.waiting import eventually

CONFIGMAP = Resource("", "v1", "configmaps", "ConfigMap")
SECRET = Resource("", "v1", "secrets", "Secret")
NAMESPACE = "default"
WITHIN = 60.0  # seconds


ANYTHING: JsonObject = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
CONDITIONS: JsonObject = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["type"],
    "items": {**ANYTHING, "required": ["type"], "properties": {"type": {"type": "string"}}},
}
STATUS: JsonObject = {**ANYTHING, "properties": {"conditions": CONDITIONS}}
CRD: JsonObject = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "things.test.example"},
    "spec": {
        "group": "test.example",
        "scope": "Namespaced",
        "names": {
            "plural": "things",
            "singular": "thing",
            "kind": "Thing",
            "listKind": "ThingList",
        },
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {**ANYTHING, "properties": {"status": STATUS}}},
            }
        ],
    },
}


class Spec(BaseModel):
    """The spec of a Thing."""

    size: int = 1
    scale: int = 0


class Thing(BaseModel):
    """A kind whose plan function each test provides."""

    definition: ClassVar[Definition] = Definition("test.example", "v1", "Thing", "things")
    metadata: dict[str, Any]
    spec: Spec


class PhasedThing(Thing):
    """A Thing whose phase is a column."""

    definition: ClassVar[Definition] = Thing.definition._replace(
        columns=(Column("Phase", ".status.phase"),)
    )


@dataclass
class Status:
    """A status with any fields."""

    fields: JsonObject = field(default_factory=dict)

    def to_api(self) -> JsonObject:
        """Return the fields."""
        return dict(self.fields)


def configmap(name: str, **data: str) -> JsonObject:
    """A ConfigMap as in a plan."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


class Things:
    """A fake API server with a running controller of Things."""

    def __init__(self, server: FakeApiServer, manager: Manager, kind: PlannedKind[Thing]) -> None:
        self.server = server
        self.manager = manager
        self.resource = kind.resource
        self._changed = asyncio.Event()
        server.storage.listeners.append(lambda _: self._wake())

    def create(self, name: str = "thing", size: Any = 1, **metadata: Any) -> JsonObject:
        """Create a Thing as a user would."""
        return self.server.create(
            self.resource,
            {
                "metadata": {"name": name, "namespace": NAMESPACE, **metadata},
                "spec": {"size": size},
            },
        )

    def request(self, name: str = "thing") -> ReconcileRequest:
        """The key of a Thing."""
        return ReconcileRequest(NAMESPACE, name)

    async def until(
        self, resource: Resource, name: str, holds: Callable[[JsonObject], bool] = lambda _: True
    ) -> JsonObject:
        """Wait until an object is as expected."""
        return await self._until(
            lambda: next(
                (
                    object
                    for object in [self.server.get(resource, name, NAMESPACE)]
                    if object and holds(object)
                ),
                None,
            )
        )

    async def until_ready(
        self, status: str = "True", reason: str | None = None, name: str = "thing"
    ) -> JsonObject:
        """Wait for the condition Ready, and return it."""
        thing = await self.until(
            self.resource, name, lambda each: self._ready(each, status, reason) is not None
        )
        return self._ready(thing, status, reason) or {}

    async def until_gone(self, resource: Resource, name: str) -> None:
        """Wait until an object no longer exists."""
        await self._until(lambda: self.server.get(resource, name, NAMESPACE) is None or None)

    async def until_told(self, reason: str) -> JsonObject:
        """Wait for an event."""
        told: JsonObject = await self._until(
            lambda: next(
                (each for each in self.server.list(EVENT) if each["reason"] == reason), None
            )
        )
        return told

    async def until_quiet(self) -> None:
        """Wait until the controller has processed all events so far."""
        marker = f"marker-{self.server.storage.version}"
        self.create(marker)
        await self.until_ready(name=marker)
        queue = self.manager.controllers[0].queue
        # Objects of the initial list are queued after the marker.
        await eventually(
            lambda: (
                not queue.processing
                and all(each.ready_at > time.monotonic() for each in queue._entries.values())
            ),
            within=WITHIN,
            every=0,
        )

    def writes(self) -> list[str]:
        """The controller's writes so far, except events: method, resource and name."""
        return [
            f"{logged_request.method} {'/'.join(logged_request.path.split('/')[logged_request.path.split('/').index(NAMESPACE) + 1 :])}"
            for logged_request in self.server.requests.writes
            if f"/{EVENT.group}/" not in logged_request.path
        ]

    @staticmethod
    def _ready(thing: JsonObject, status: str, reason: str | None) -> JsonObject | None:
        for condition in thing.get("status", {}).get("conditions", ()):
            if (condition["type"], condition["status"]) == ("Ready", status) and reason in (
                None,
                condition["reason"],
            ):
                return deepcopy(condition)
        return None

    async def _until(self, find: Callable[[], Any]) -> Any:
        async with asyncio.timeout(WITHIN):
            while (found := find()) is None:
                await self._changed.wait()
        return found

    def _wake(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()


Planner = Callable[[Thing, Observed, datetime], Plan]
Running = Callable[..., AbstractAsyncContextManager[Things]]


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retries after a failure, and repairs in a contest, wait milliseconds instead of longer."""
    monkeypatch.setattr(controller.runtime.expectations, "PATIENCE", 0.05)
    monkeypatch.setattr(controller.runtime.workqueue, "FIRST_DELAY", 0.01)
    monkeypatch.setattr(controller.runtime.workqueue, "MAX_JITTER", 0.01)
    monkeypatch.setattr(controller.runtime.workqueue, "MAX_DELAY", 0.1)
    # Random edits may be a contest, in which a field is restored once a minute.
    monkeypatch.setattr(controller.runtime.conflict_backoff, "REPAIR_INTERVAL", 0.05)
    monkeypatch.setattr(controller.runtime.conflict_backoff, "CONTEST_END", 0.1)
    monkeypatch.setattr(kube.backoff, "LONGEST", 0.05)
    monkeypatch.setattr(kube.backoff, "LONGEST_UNREACHABLE", 0.05)


@pytest.fixture
async def server() -> AsyncIterator[FakeApiServer]:
    """A fake API server that serves Things."""
    async with FakeApiServer() as server:
        server.define(deepcopy(CRD))
        yield server


def kind_of(plan: Planner, *, type: type[Thing] = Thing, **declared: Any) -> PlannedKind[Thing]:
    """The kind Thing with the plan of a test."""
    return PlannedKind(type, plan=plan, **{"owns": (CONFIGMAP, SECRET), **declared})


@pytest.fixture
def running(server: FakeApiServer) -> Running:
    """Runs a controller of Things with the test's plan function until the end of the block."""

    @asynccontextmanager
    async def start(plan: Planner, **declared: Any) -> AsyncIterator[Things]:
        kind = kind_of(plan, **declared)
        manager = Manager(server.endpoint, CollectorRegistry(), identity="the-test")
        manager.add_kind(kind)
        stop = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(manager.run(stop))
            try:
                await manager.caches.wait_synced()
                yield Things(server, manager, kind)
            finally:
                stop.set()

    return start
