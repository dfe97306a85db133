"""What policies look up beside namespaces: from watches that begin with the first need, and live until then."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, Never

from config.crds import kinds
from kube.client import Client
from kube.errors import NotFound
from kube.resource import Resource
from kube.store import Store
from kube.watch import Watch
from webhook.engine import Attributes
from webhook.engine.kinds import OF_A_PARENT
from webhook.engine.look_ups import summary
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
POD = Resource("", "v1", "pods", "Pod")  # whose labels select exec, attach and the like
RESOURCES = (LIMIT_RANGE, SERVICE, BUDGET, INGRESS, POD, *SCALED.values())  # what the webhook must be allowed to read

NAMESPACE = "namespace"  # the index by namespace
A_MOMENT = 10.0  # seconds; a CRD takes longer to be installed

Object = dict[str, Any]
Answer = list[Object] | Coroutine[Any, Any, list[Object]]
Shape = Callable[[Object], Object]


def _whole(object: Object) -> Object:
    return object


def _namespace(object: Object) -> tuple[str, ...]:
    return (object["metadata"].get("namespace", ""),)


class LookUps:
    """Looks things up for one API server; `run` keeps the watches that were begun."""

    def __init__(self, client: Client, scaled: Iterable[Resource] = (), optional: Iterable[Resource] = ()) -> None:
        """Know what else than built-in kinds and ours has a /scale, and what the API server may be without."""
        self._client = client
        self._optional = tuple(optional)
        self._served: frozenset[ResourceKey] = frozenset()
        self._ask_again = 0.0
        self._parents = (
            SCALED
            | {(POD.group, POD.plural): POD}
            | {(resource.group, resource.plural): resource for resource in scaled}
        )
        self._stores: dict[Resource, Store] = {}
        self._begun: asyncio.Queue[Store] = asyncio.Queue()

    async def run(self) -> Never:
        """Watch what was needed once, for ever."""
        async with asyncio.TaskGroup() as group:
            while True:
                store = await self._begun.get()
                watch = Watch(self._client, store.resource, store)
                group.create_task(watch.run(), name=f"watch {store.resource.plural}")

    def limit_ranges(self, about: Attributes) -> Answer:
        """Return the LimitRanges of a request's namespace."""
        return self._all((LIMIT_RANGE,), about.namespace)

    def services(self, about: Attributes) -> Answer:
        """Return the Services of a request's namespace."""
        return self._all((SERVICE,), about.namespace)

    def ingresses(self, about: Attributes) -> Answer:
        """Return namespace, name and hosts of every Ingress."""
        del about
        return self._all((INGRESS,), shape=summary)

    def disruption_budgets(self, about: Attributes) -> Answer:
        """Return the PodDisruptionBudgets of a request's namespace."""
        return self._all((BUDGET,), about.namespace)

    def workloads(self, about: Attributes) -> Answer:
        """Return the objects that run replicas of a pod template in the request's namespace."""
        return self._all(WORKLOADS, about.namespace)

    async def parent(self, about: Attributes) -> Object:
        """Return the object that a subresource such as /scale or exec belongs to; nothing where it is about none."""
        resource = self._parents.get((about.resource_group, about.resource))
        if about.subresource not in OF_A_PARENT or resource is None:
            return {}
        try:
            return await self._client.get(resource, about.name, about.namespace)
        except NotFound:
            return {}  # the API server will say so itself

    def served(self, about: Attributes) -> Served | Coroutine[Any, Any, Served]:
        """Return which of the optional resources the API server has, as it answered in the last moments."""
        del about
        return self._served if time.monotonic() < self._ask_again else self._ask_served()

    async def _ask_served(self) -> Served:
        answers = await asyncio.gather(*map(self._client.serves, self._optional))
        found = (each for each, is_served in zip(self._optional, answers, strict=True) if is_served)
        self._served = frozenset((each.group, each.plural) for each in found)
        self._ask_again = time.monotonic() + A_MOMENT
        return self._served

    def _all(self, resources: Iterable[Resource], namespace: str | None = None, shape: Shape = _whole) -> Answer:
        """Return the objects of some resources: from their watches, or listed while one of these has not begun."""
        stores = [self._stores.get(each) or self._begin(each) for each in resources]
        if not all(store.synced.is_set() for store in stores):
            return self._list(stores, namespace, shape)
        found = ((store, store.keys() if namespace is None else store.index(NAMESPACE, namespace)) for store in stores)
        objects = (store.get(key) for store, keys in found for key in sorted(keys))
        return [shape(object) for object in objects if object is not None]

    def _begin(self, resource: Resource) -> Store:
        store = self._stores[resource] = Store(resource)
        store.add_index(NAMESPACE, _namespace)
        self._begun.put_nowait(store)
        return store

    async def _list(self, stores: Iterable[Store], namespace: str | None, shape: Shape) -> list[Object]:
        listed = [self._client.list(store.resource, namespace) for store in stores]
        return [shape(object) for each in listed async for object in each]
