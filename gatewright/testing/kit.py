"""The public API for tests of kinds and controllers: single reconciles on an in-memory API server.

A test of the kind WIDGET, whose controller applies a Deployment and the status:

    async with ApiServer(WIDGET) as server:
        metadata = {"name": "gears", "namespace": "default"}
        server.create(WIDGET.resource, {"metadata": metadata, "spec": {}})
        await reconcile(WIDGET, server, "gears")
        assert server.writes == [
            "apply deployments default/gears",
            "apply widgets/status default/gears",
        ]
        assert server.events == []
"""

import asyncio
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Self

from prometheus_client import CollectorRegistry

from config.api.meta import CustomResource
from config.crds import definition
from controller.runtime.events import EVENT
from controller.runtime.kind import PlannedKind
from controller.runtime.manager import Manager
from controller.runtime.types import ReconcileRequest, Result
from gatewright.testing.fake_apiserver import FakeApiServer
from kube.resource import Resource

__all__ = ["ApiServer", "reconcile"]

VERBS = {"POST": "create", "PUT": "replace", "PATCH": "patch", "DELETE": "delete"}
ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


class ApiServer(FakeApiServer):
    """An API server in the test's own process, with versions, conflicts and field ownership.

    It serves the usual built-in kinds, the given kinds by their schemas, and the resources that
    planned kinds own and read. It has no controllers, and neither defaults nor validation for
    built-in kinds. `create`, `change`, `get`, `list` and `delete` act as other clients.
    """

    def __init__(self, *kinds: PlannedKind[Any] | type[CustomResource]) -> None:
        super().__init__()
        self._custom = kinds

    async def __aenter__(self) -> Self:
        for kind in self._custom:
            type: Any = kind.type if isinstance(kind, PlannedKind) else kind
            self.define(_schema_of(type))
            used = (*kind.owns, *kind.reads) if isinstance(kind, PlannedKind) else ()
            for resource in {*used} - {*getattr(kind, "optional", ())}:
                if not self.serves(resource):
                    self.serve(resource)
        return await super().__aenter__()

    @property
    def writes(self) -> list[str]:
        """The requested writes except events, such as `apply deployments default/test-webapp`."""
        requests = ((each, each.path.split("/")) for each in self.requests.writes)
        return [
            (
                f"{'apply' if 'apply' in request.content_type else VERBS[request.method]} "
                f"{_format_path(path, request.body)}"
            )
            for request, path in requests
            if "events.k8s.io" not in path
        ]

    @property
    def events(self) -> list[str]:
        """The events, such as `Warning NameTaken WebApp default/shop: Service shop exists …`."""
        return [_event_text(each) for each in self.list(EVENT)]

    def serve(self, resource: Resource) -> None:
        """Serve a resource whose objects may have any fields, as under an older schema."""
        self.define(_definition(resource))

    def serves(self, resource: Resource) -> bool:
        """Return whether the server has a resource."""
        kinds = self._cluster.kinds(resource.group, resource.version)
        return any(each.resource.plural == resource.plural for each in kinds)


async def reconcile(
    target: PlannedKind[Any] | Callable[[Manager], object],
    server: FakeApiServer,
    name: str,
    namespace: str | None = "default",
    **settings: Any,
) -> Result:
    """Reconcile one object once, like a controller that has just started and synced its caches.

    `target` is a planned kind, whose planner gets the `settings`, or a function that adds one
    controller to a manager. Objects of a cluster-scoped kind have no namespace, whatever is given.
    Exceptions of the reconcile are raised. Its events are written when it returns.
    """
    manager = Manager(server.endpoint, CollectorRegistry(), identity="test")
    if isinstance(target, PlannedKind):
        manager.add_kind(target, settings=settings)
    else:
        target(manager)
    (controller,) = manager.controllers
    if controller.primary is not None and not controller.primary.resource.namespaced:
        namespace = None
    async with manager.client:
        running = [
            asyncio.create_task(task) for task in (manager.caches.run(), manager.recorder.run())
        ]
        try:
            await manager.caches.wait_synced()
            return await controller.reconcile(ReconcileRequest(namespace, name))
        finally:
            await manager.recorder.flush()
            for task in running:
                task.cancel()
            await asyncio.wait(running)


@cache
def _schema_of(type: Any) -> dict[str, Any]:
    return definition(type)


def _format_path(path: list[str], body: Any) -> str:
    """Return the resource, namespace and name in an API path."""
    below = path[3 if path[1] == "api" else 4 :]
    namespace = below[1] if below[0] == "namespaces" and len(below) > 2 else ""
    plural, *rest = below[2:] if namespace else below
    name = rest[0] if rest else body["metadata"]["name"]
    return f"{'/'.join([plural, *rest[1:]])} {f'{namespace}/' if namespace else ''}{name}"


def _definition(resource: Resource) -> dict[str, Any]:
    """Return a CRD that allows any field in objects of a resource."""
    version = {
        "name": resource.version,
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": ANYTHING},
    }
    names = {"plural": resource.plural, "singular": resource.kind.lower(), "kind": resource.kind}
    return {
        "metadata": {"name": f"{resource.plural}.{resource.group}"},
        "spec": {
            "group": resource.group,
            "scope": "Namespaced" if resource.namespaced else "Cluster",
            "names": {**names, "listKind": f"{resource.kind}List"},
            "versions": [version],
        },
    }


def _event_text(event: Mapping[str, Any]) -> str:
    regarding = event["regarding"]
    name = "/".join(filter(None, (regarding.get("namespace"), regarding["name"])))
    return f"{event['type']} {event['reason']} {regarding['kind']} {name}: {event['note']}"
