"""For unit tests of kinds: one reconcile at a time, without an API server.

client = FakeClient()
await client.create(WEBAPP.resource, webapp)
await reconcile(WEBAPP, client, "test-webapp")
deployment = await client.get(DEPLOYMENT, "test-webapp", "default")
"""

from typing import Any

from prometheus_client import CollectorRegistry

from controller.runtime.caches import Caches
from controller.runtime.events import Recorder
from controller.runtime.fake_client import FakeClient
from controller.runtime.metrics import Metrics
from controller.runtime.plan import PlannedKind
from controller.runtime.planned import Planned
from controller.runtime.result import Request, Result

__all__ = ["FakeClient", "reconcile"]


async def reconcile(
    kind: PlannedKind[Any], client: FakeClient, name: str, namespace: str | None = "default", **settings: Any
) -> Result:
    """Reconcile one object once, as a controller would that has just started and read everything."""
    caches = Caches(client)
    recorder, metrics = Recorder(client, "test"), Metrics(CollectorRegistry())
    planned = Planned(kind, client, caches, recorder, metrics, settings=settings)
    for cache in caches:
        (store,) = cache.stores.values()
        async for object in client.list(cache.resource):
            store.put(object)
        store.synced.set()
    return await planned.reconcile(Request(namespace, name))
