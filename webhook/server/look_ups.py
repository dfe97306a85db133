"""What policies look up beside namespaces: from watches that begin with the first need, and live until then."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterable
from typing import Any, Never

from config.crds import kinds
from kube.client import Client
from kube.errors import NotFound
from kube.resource import Resource
from kube.store import Store
from kube.watch import Watch
from webhook.engine import Request
from webhook.engine.ingresses import summary
from webhook.engine.planners import ResourceKey, Served

LIMIT_RANGE = Resource("", "v1", "limitranges", "LimitRange")
SERVICE = Resource("", "v1", "services", "Service")
BUDGET = Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget")
INGRESS = Resource("networking.k8s.io", "v1", "ingresses", "Ingress")
WORKLOADS = (
    Resource("", "v1", "replicationcontrollers", "ReplicationController"),
    Resource("apps", "v1", "deployments", "Deployment"),
    Resource("apps", "v1", "replicasets", "ReplicaSet"),
    Resource("apps", "v1", "statefulsets", "StatefulSet"),
)
OURS = tuple(
    Resource(about.group, about.version, about.plural, about.kind)
    for about in (kind.definition for kind in kinds())
    if about.scale is not None and about.storage
)
SCALED = {(resource.group, resource.plural): resource for resource in (*WORKLOADS, *OURS)}
RESOURCES = (LIMIT_RANGE, SERVICE, BUDGET, INGRESS, *SCALED.values())  # what the webhook must be allowed to read

A_MOMENT = 10.0  # seconds; a CRD takes longer to be installed

Object = dict[str, Any]


class LookUps:
    """Looks things up for one API server; `run` keeps the watches that were begun."""

    def __init__(self, client: Client, scaled: Iterable[Resource] = (), optional: Iterable[Resource] = ()) -> None:
        """Know what else than built-in kinds and ours has a /scale, and what the API server may be without."""
        self._client = client
        self._optional = tuple(optional)
        self._served: frozenset[ResourceKey] = frozenset()
        self._asked_again = 0.0
        self._scaled = SCALED | {(resource.group, resource.plural): resource for resource in scaled}
        self._stores: dict[Resource, Store] = {}
        self._begun: asyncio.Queue[Store] = asyncio.Queue()

    async def run(self) -> Never:
        """Watch what was needed once, for ever."""
        async with asyncio.TaskGroup() as group:
            while True:
                store = await self._begun.get()
                watch = Watch(self._client, store.resource, store)
                group.create_task(watch.run(), name=f"watch {store.resource.plural}")

    async def limit_ranges(self, request: Request) -> list[Object]:
        """Return the LimitRanges of the request's namespace."""
        return [each async for each in self._all(LIMIT_RANGE, request.attributes.namespace)]

    async def services(self, request: Request) -> list[Object]:
        """Return the Services of the request's namespace."""
        return [each async for each in self._all(SERVICE, request.attributes.namespace)]

    async def ingresses(self, request: Request) -> list[Object]:
        """Return namespace, name and hosts of every Ingress."""
        del request
        return [summary(each) async for each in self._all(INGRESS)]

    async def disruption_budgets(self, request: Request) -> list[Object]:
        """Return the PodDisruptionBudgets of the request's namespace."""
        return [each async for each in self._all(BUDGET, request.attributes.namespace)]

    async def workloads(self, request: Request) -> list[Object]:
        """Return what runs replicas of a pod template in the request's namespace."""
        return [each for resource in WORKLOADS async for each in self._all(resource, request.attributes.namespace)]

    async def scale_parent(self, request: Request) -> Object:
        """Return the object that a /scale subresource scales; nothing where the request is about no /scale."""
        resource = self._scaled.get((request.attributes.resource_group, request.attributes.resource))
        if request.attributes.subresource != "scale" or resource is None:
            return {}
        try:
            return await self._client.get(resource, request.attributes.name, request.attributes.namespace)
        except NotFound:
            return {}  # the API server will say so itself

    async def served(self, request: Request) -> Served:
        """Return which of the optional resources the API server has, as it said a moment ago."""
        del request
        if time.monotonic() >= self._asked_again:
            answers = await asyncio.gather(*map(self._client.serves, self._optional))
            found = (each for each, is_served in zip(self._optional, answers, strict=True) if is_served)
            self._served = frozenset((each.group, each.plural) for each in found)
            self._asked_again = time.monotonic() + A_MOMENT
        return self._served

    async def _all(self, resource: Resource, namespace: str | None = None) -> AsyncIterator[Object]:
        store = self._stores.get(resource)
        if store is None:
            store = self._stores[resource] = Store(resource)
            self._begun.put_nowait(store)
        if store.synced.is_set():
            for key in sorted(store.keys()):
                object = store.get(key) if namespace is None or key.startswith(f"{namespace}/") else None
                if object is not None:
                    yield object
        else:
            async for listed in self._client.list(resource, namespace):
                yield listed
