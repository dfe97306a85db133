"""Look-ups of policies: from watches, or from the API server until these are synced."""

import asyncio
import time
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping
from functools import partial
from typing import Any, Never

from config.crds import kinds
from config.schemas import CustomTypes, root_type
from kube.client import Client
from kube.errors import ApiError, NotFound
from kube.resource import JsonObject, Resource
from kube.store import Entry, Store
from kube.watch import Watch
from webhook.engine import NAMESPACE, NAMESPACE_LABELS, PARENT, SCHEMAS, SERVED, Attributes
from webhook.engine.kinds import KINDS, OF_A_PARENT, POD, POLICY_KINDS
from webhook.engine.look_ups import (
    BUDGET,
    CLUSTER_ROLE,
    INGRESS,
    LIMIT_RANGE,
    LOOK_UPS,
    SCALED_OBJECT,
    SCALERS,
    SERVICE,
    WORKLOADS,
)
from webhook.engine.planners import ResourceKey, Served
from webhook.policy_sets.bound_objects import MAX_POLICY_BYTES
from webhook.policy_sets.kind_names import custom_versions
from webhook.review import sent_object
from webhook.server.needs import LookUpFunction
from webhook.server.stored_objects import StoredObjects

NAMESPACES = KINDS["", "Namespace"].resource
OURS = tuple(
    about.resource
    for about in (kind.definition for kind in kinds())
    if about.scale is not None and about.storage
)
# Objects with subresources: a Pod's labels select exec, attach and the like.
PARENTS = (POD.resource, SERVICE, *WORKLOADS, *OURS)
# Resources that the webhook must have permission to read.
RESOURCES = (LIMIT_RANGE, BUDGET, INGRESS, CLUSTER_ROLE, *SCALERS, *PARENTS)

POLICY_OBJECTS = {(kind.group, kind.kind) for kind in POLICY_KINDS}
BY_NAMESPACE = "namespace"
A_MINUTE = 60.0  # seconds that the schemas of a group and version are cached
A_MOMENT = 10.0  # seconds that an answer about served APIs is cached; installing a CRD takes longer


class LookUps:
    """Look-ups from one API server; `run` runs the watches that were started."""

    def __init__(
        self, client: Client, scaled: Iterable[Resource] = (), optional: Iterable[Resource] = ()
    ) -> None:
        """Take other kinds with a /scale, and kinds that the API server may lack."""
        self._client = client
        self._optional = tuple(optional)
        self._served: Served = frozenset[ResourceKey]()
        self._ask_again = 0.0
        self._schemas: dict[str, tuple[float, CustomTypes]] = {}
        self._parents = {(each.group, each.plural): each for each in (*PARENTS, *scaled)}
        self._stores: dict[Resource, Store] = {}
        self._begun: asyncio.Queue[Store] = asyncio.Queue()
        self._namespaces = self._store(NAMESPACES)
        self.by_name: dict[str, LookUpFunction] = {
            NAMESPACE: self.namespace,
            NAMESPACE_LABELS: self.namespace_labels,
            PARENT: self.parent,
            SERVED: self.served_resources,
            SCHEMAS: self.schemas,
            **{name: partial(self.objects, name) for name in LOOK_UPS},
        }

    async def run(self) -> Never:
        """Watch the namespaces, and every resource that was needed once, forever."""
        async with asyncio.TaskGroup() as group:
            while True:
                store = await self._begun.get()
                is_custom = store.resource == SCALED_OBJECT
                watch = Watch(self._client, store.resource, store, optional=is_custom)
                group.create_task(watch.run(), name=f"watch {store.resource.plural}")

    def namespace_labels(
        self, about: Attributes
    ) -> Mapping[str, str] | Coroutine[Any, Any, Mapping[str, str]]:
        """Return the labels of a request's namespace.

        Raises ApiError if the API server does not answer.
        """
        if not about.namespace:
            return {}
        entry = self._namespaces.entry(about.namespace)
        return self._labels(about.namespace) if entry is None else entry.labels

    async def _labels(self, namespace: str) -> Mapping[str, str]:
        return (await self._client.get(NAMESPACES, namespace))["metadata"].get("labels") or {}

    def namespace(self, about: Attributes) -> JsonObject | Coroutine[Any, Any, JsonObject] | None:
        """Return the Namespace of a request. Raises ApiError if the API server does not answer."""
        if not about.namespace:
            return None
        entry = self._namespaces.entry(about.namespace)
        return self._client.get(NAMESPACES, about.namespace) if entry is None else entry.object

    async def parent(self, about: Attributes) -> JsonObject:
        """Return the object that a subresource such as /scale or exec belongs to.

        Empty if it does not exist. Raises ApiError if the webhook does not read its kind.
        """
        if about.subresource not in OF_A_PARENT:
            return {}
        resource = self._parents.get((about.resource_group, about.resource))
        if resource is None:
            raise ApiError(0, "Unread", f"the webhook does not read {about.resource}")
        try:
            return await self._client.get(resource, about.name, about.namespace)
        except NotFound:
            return {}  # the API server itself rejects the request

    async def served_resources(self, _: Attributes) -> Served:
        """Return the optional resources that the API server serves, from a recent answer."""
        if time.monotonic() >= self._ask_again:
            answers = await asyncio.gather(*map(self._client.serves, self._optional))
            resources = (
                resource
                for resource, is_served in zip(self._optional, answers, strict=True)
                if is_served
            )
            self._served = frozenset((each.group, each.plural) for each in resources)
            self._ask_again = time.monotonic() + A_MOMENT
        return self._served

    async def schemas(self, about: Attributes) -> Callable[[], CustomTypes]:
        """Return the types of the request's group and version, from a recent answer.

        For a policy object, these are the types of the custom kinds that it names, as they are
        served now: its CRD may be a second older. Raises ApiError if the API server does not
        answer.
        """
        if (about.group, about.kind) in POLICY_OBJECTS:
            policy = sent_object(about, MAX_POLICY_BYTES)
            types = await self._read_types(custom_versions(policy.get("spec")))
            return lambda: types
        api_version = f"{about.group}/{about.version}"
        if root_type(api_version.lstrip("/"), about.kind):
            return CustomTypes
        cached = self._schemas.get(api_version)
        if cached is None or time.monotonic() >= cached[0]:
            types = await self._read_types([api_version])
            cached = self._schemas[api_version] = time.monotonic() + A_MINUTE, types
        return lambda: cached[1]

    async def _read_types(self, api_versions: Collection[str]) -> CustomTypes:
        documents = await self._client.schemas(api_versions)
        return await asyncio.to_thread(CustomTypes.of_openapi, documents)

    async def objects(self, name: str, about: Attributes) -> Iterable[JsonObject]:
        """Return the objects of a look-up, from watches, or by a list until these are synced.

        A resource that the API server does not serve, as of an operator, has none.
        """
        look_up = LOOK_UPS[name]
        namespace = None if look_up.everywhere else about.namespace
        stores = [self._store(each) for each in look_up.resources]
        if not all(store.synced.is_set() or store.absent for store in stores):
            return [
                look_up.used_part(object, "")
                for store in stores
                for object in await self._list(store.resource, namespace)
            ]
        entries = list[Entry]()
        for store in stores:
            keys = store.keys() if namespace is None else store.index(BY_NAMESPACE, namespace)
            entries += filter(None, map(store.entry, sorted(keys)))
        return StoredObjects(look_up, entries)

    async def _list(self, resource: Resource, namespace: str | None) -> list[JsonObject]:
        try:
            return [object async for object in self._client.list(resource, namespace)]
        except NotFound:
            if await self._client.serves(resource):
                raise
            return []

    def _store(self, resource: Resource) -> Store:
        """Return the store of a resource, and start its watch if necessary."""
        if resource not in self._stores:
            store = self._stores[resource] = Store(resource)
            store.add_index(BY_NAMESPACE, lambda each: (each["metadata"].get("namespace", ""),))
            self._begun.put_nowait(store)
        return self._stores[resource]
