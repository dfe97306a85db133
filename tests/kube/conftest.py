"""An API server for each test: the fake one, or the namespace of a real one."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import orjson
import pytest
import uvloop

from gatewright.testing.fake_apiserver import FakeApiServer
from kube.client import Client
from kube.credentials import load
from kube.errors import AlreadyExists
from kube.resource import CRD, Resource, target
from kube.store import Change
from kube.transport import Lines
from tests.fakes.hurried_loop import HurriedLoop

ON_BOTH_LOOPS = ("test_proxy", "test_transport")

CONFIG_MAP = Resource("", "v1", "configmaps", "ConfigMap")
SECRET = Resource("", "v1", "secrets", "Secret")
NAMESPACE = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
DEPLOYMENT = Resource("apps", "v1", "deployments", "Deployment")
GIZMO = Resource("conformance.example.test", "v1", "gizmos", "Gizmo")

TEXT = {"type": "string"}
CONDITIONS = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["type"],
    "items": {"type": "object", "required": ["type"], "properties": {"type": TEXT, "status": TEXT}},
}
PARTS = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["name"],
    "items": {"type": "object", "required": ["name"], "properties": {"name": TEXT, "color": TEXT}},
}
GIZMO_CRD = {
    "metadata": {"name": "gizmos.conformance.example.test"},
    "spec": {
        "group": GIZMO.group,
        "scope": "Namespaced",
        "names": {
            "plural": GIZMO.plural,
            "singular": "gizmo",
            "kind": GIZMO.kind,
            "listKind": "GizmoList",
        },
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "selectableFields": [{"jsonPath": ".spec.color"}],
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "required": ["size"],
                                "properties": {
                                    "size": {"type": "integer", "minimum": 1, "maximum": 10},
                                    "color": {"type": "string", "default": "red"},
                                    "tags": {"type": "array", "items": TEXT},
                                    "parts": PARTS,
                                },
                            },
                            "status": {
                                "type": "object",
                                "properties": {"phase": TEXT, "conditions": CONDITIONS},
                            },
                        },
                    }
                },
            }
        ],
    },
}


def pytest_asyncio_loop_factories(
    item: pytest.Item,
) -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """The event loop of the product, or one that skips waiting times.

    Tests that depend on the loop also run on Python's.
    """
    if item.path.stem == "test_dead_connections":
        return {"hurried": HurriedLoop}
    product: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {"uvloop": uvloop.new_event_loop}
    return (
        product | {"asyncio": asyncio.new_event_loop}
        if item.path.stem in ON_BOTH_LOOPS
        else product
    )


@dataclass(frozen=True)
class Api:
    """A client of an API server, and a namespace of it for the test alone."""

    client: Client
    namespace: str

    def named(self, name: str, **metadata: Any) -> dict[str, Any]:
        """Return the metadata of an object in the namespace."""
        return {"name": name, "namespace": self.namespace, **metadata}

    async def config_map(
        self, name: str, data: dict[str, str] | None = None, **metadata: Any
    ) -> dict[str, Any]:
        """Create a ConfigMap."""
        return await self.client.create(
            CONFIG_MAP, {"metadata": self.named(name, **metadata), "data": data or {"a": "1"}}
        )

    async def gizmo(self, name: str, **spec: Any) -> dict[str, Any]:
        """Create a custom resource."""
        return await self.client.create(
            GIZMO, {"metadata": self.named(name), "spec": {"size": 1, **spec}}
        )

    @asynccontextmanager
    async def watch(
        self, resource: Resource, **query: str
    ) -> AsyncIterator[AsyncIterator[tuple[str, dict[str, Any]]]]:
        """Open a watch, and give its events: type and object."""
        asked = {"watch": "true", "allowWatchBookmarks": "true", "timeoutSeconds": "60", **query}
        namespace = self.namespace if resource.namespaced else None
        path = target(resource.path(namespace), asked)
        async with self.client.lines(path) as stream, asyncio.timeout(60):
            yield events(stream)

    async def until(
        self, resource: Resource, name: str, holds: Callable[[dict[str, Any] | None], bool]
    ) -> dict[str, Any] | None:
        """Return an object as soon as a condition is true for it; None stands for a missing object."""
        namespace = self.namespace if resource.namespaced else None
        by_name = f"metadata.name={name}"
        page = await self.client.page(resource, namespace, fields=by_name)
        current = next(iter(page), None)
        if holds(current):
            return current
        query = {"fieldSelector": by_name, "resourceVersion": str(page.version)}
        async with self.watch(resource, **query) as events:
            async for kind, object in events:
                if kind in ("ADDED", "MODIFIED"):
                    current = object
                elif kind == "DELETED":
                    current = None
                if holds(current):
                    return current
        raise AssertionError("the watch ended")


def type_of(change: Change) -> str:
    """Return the type of a change: added, modified or deleted."""
    if change.old is None:
        return "added"
    return "deleted" if change.new is None else "modified"


async def events(stream: AsyncIterator[Lines]) -> AsyncIterator[tuple[str, dict[str, Any]]]:
    """Yield the type and the object of each line of a watch, until it ends."""
    async for lines in stream:
        for line in lines:
            event = orjson.loads(line)
            yield event["type"], event["object"]


@pytest.fixture(params=["fake", pytest.param("real", marks=pytest.mark.controlplane)])
async def api(request: pytest.FixtureRequest) -> AsyncIterator[Api]:
    """Both API servers, one after the other: a test must pass on both."""
    if request.param == "fake":
        async with (
            FakeApiServer() as server,
            Client(server.endpoint, user_agent="conformance/1") as client,
        ):
            server.watches.second = 0.1
            yield await prepared(Api(client, "default"))
    else:
        plane, namespace = (
            request.getfixturevalue("control_plane"),
            request.getfixturevalue("namespace"),
        )
        async with Client(await load(plane.kubeconfig), user_agent="conformance/1") as client:
            yield await prepared(Api(client, namespace))


async def prepared(api: Api) -> Api:
    """See to it that the custom resource of the suite is served."""
    with suppress(AlreadyExists):
        await api.client.create(CRD, deepcopy(GIZMO_CRD))
    await api.until(CRD, GIZMO_CRD["metadata"]["name"], established)
    return api


def established(crd: dict[str, Any] | None) -> bool:
    """Return whether the API server serves the kinds of a CRD."""
    conditions = (crd or {}).get("status", {}).get("conditions") or []
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)
