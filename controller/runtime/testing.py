"""For unit tests: one reconcile at a time, without an API server; of planned kinds, and of controllers by hand.

client = FakeClient()
await client.create(WIDGET.resource, widget)
await reconcile(WIDGET, client, "gears")
deployment = await client.get(DEPLOYMENT, "gears", "default")
"""

from typing import Any

from prometheus_client import CollectorRegistry

from controller.runtime.caches import Caches
from controller.runtime.events import Recorder
from controller.runtime.fake_client import FakeClient
from controller.runtime.metrics import Metrics
from controller.runtime.plan import Event, Object
from controller.runtime.planned import Planned
from controller.runtime.planned_kind import PlannedKind
from controller.runtime.result import Request, Result
from controller.runtime.runtime import Runtime
from kube.changes import Changes
from kube.client import Client
from kube.endpoint import Endpoint


class FakeRecorder(Recorder):
    """A recorder that writes nothing: what is told stands in the client's `events`."""

    def __init__(self, client: FakeClient) -> None:
        super().__init__(client, "test")
        self._told = client.events

    def tell(self, regarding: Object, event: Event, *, action: str = "Reconcile") -> None:
        """Note an event."""
        del action
        about = regarding["metadata"]
        name = "/".join(filter(None, (about.get("namespace"), about["name"])))
        self._told.append(f"{event.type} {event.reason} {regarding['kind']} {name}: {event.note}")


class FakeRuntime(Runtime):
    """A runtime that is never run: controllers are added to it as to any other, and read and write a `FakeClient`."""

    def __init__(self, client: FakeClient | None = None) -> None:
        """Take a client, or make one; it is `client`."""
        super().__init__(Endpoint("http://no-api-server.invalid"), CollectorRegistry(), identity="test")
        self.client = client or FakeClient()
        self.caches = Caches(self.client)
        self.recorder = FakeRecorder(self.client)

    async def reconcile(self, name: str, namespace: str | None = "default") -> Result:
        """Let the one controller look at one object, its caches complete."""
        (controller,) = self.controllers
        await fill(self.caches, self.client)
        return await controller.reconcile(Request(namespace, name))


async def reconcile(
    kind: PlannedKind[Any], client: FakeClient, name: str, namespace: str | None = "default", **settings: Any
) -> Result:
    """Reconcile one object once, as a controller would that has just started and read everything.

    Its writes stand in the client's `writes`, what it told in its `events`.
    """
    caches = Caches(client)
    planned = Planned(kind, client, caches, FakeRecorder(client), Metrics(CollectorRegistry()), settings=settings)
    await fill(caches, client)
    return await planned.reconcile(Request(namespace, name))


async def fill(caches: Caches, client: Client) -> None:
    """Let caches know what exists, as their watches would."""
    for cache in caches:
        (store,) = cache.stores.values()
        changes = Changes(store)
        changes.begin_listing()
        async for page in client.pages(cache.resource, labels=cache.labels):
            for object in page["items"]:
                changes.put(object)
            changes.end_listing(page["metadata"]["resourceVersion"])
