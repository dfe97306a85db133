"""The caches of a process: each resource is watched once and shared by all readers."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from controller.runtime.cache_filter import MAX_UNREQUESTED, MAX_UNREQUESTED_EACH, CacheFilter
from kube.budget import ByteBudget
from kube.client import Client
from kube.index import IndexFunction
from kube.resource import JsonObject, Resource
from kube.store import Change, Entry, Store
from kube.watch import Watch

OWNERS_FIRST = 5.0  # seconds; afterwards the other caches do not wait for them any longer


class Cache:
    """The objects of one resource, in the namespaces that are watched."""

    def __init__(
        self,
        client: Client,
        resource: Resource,
        namespaces: Sequence[str],
        budget: ByteBudget | None = None,
        **selected: Any,
    ) -> None:
        """Watch all namespaces, or some of them with a watch each.

        `budget` limits the children that no plan has requested (default: no limit). `selected` are
        the options of a Watch.
        """
        self.resource = resource
        self.filter = CacheFilter()
        watched = (namespaces if resource.namespaced else ()) or (None,)
        self.stores = {
            namespace: Store(resource, self.filter.keep, self.filter.is_child, budget)
            for namespace in watched
        }
        self.watches = [
            Watch(client, resource, store, namespace=namespace, **selected)
            for namespace, store in self.stores.items()
        ]

    def __iter__(self) -> Iterator[str]:
        """Yield the keys of all objects."""
        for store in self.stores.values():
            yield from store.keys()

    def entry(self, key: str) -> Entry | None:
        """Return the entry of one object, without decoding it."""
        return self._store(key).entry(key)

    def get(self, key: str) -> JsonObject | None:
        """Return a private copy of one object, or None."""
        return self._store(key).get(key)

    def request(self, key: str) -> bool:
        """Keep a child from now on; return whether it must be read, since the cache omits it."""
        return self._store(key).request(key)

    def index(self, name: str, value: str) -> Iterator[str]:
        """Yield the keys of the objects that an index has under `value`."""
        for store in self.stores.values():
            yield from store.index(name, value)

    def add_index(self, name: str, function: IndexFunction) -> None:
        """Add an index."""
        for store in self.stores.values():
            store.add_index(name, function)

    def has_seen(self, key: str, resource_version: int) -> bool:
        """Return whether the cache has this version of an object, a later one, or its deletion."""
        store, entry = self._store(key), self.entry(key)
        return (
            max(store.resource_version, entry.resource_version if entry else 0) >= resource_version
        )

    def subscribe(self, callback: Callable[[Change], None]) -> None:
        """Call `callback` with each change, after it is in the cache."""
        for store in self.stores.values():
            store.subscribers.append(callback)

    def subscribe_touched(self, callback: Callable[[str], None]) -> None:
        """Call `callback` with the key of each changed object, also of one that is not cached."""
        for store in self.stores.values():
            store.on_touched.append(callback)

    def subscribe_served(self, callback: Callable[[], None]) -> None:
        """Call `callback` when the API server starts or stops serving the resource."""
        for store in self.stores.values():
            store.on_served.append(callback)

    def subscribe_new_schema(self, callback: Callable[[], None]) -> None:
        """Call `callback` when the schema of a custom resource may have changed."""
        for store in self.stores.values():
            store.on_new_schema.append(callback)

    @property
    def is_synced(self) -> bool:
        """Whether the initial list is complete, if the resource is served."""
        return all(each.is_set() for each in self._sync_events())

    @property
    def is_served(self) -> bool:
        """Whether the API server serves the resource, as far as is known."""
        return not any(store.absent for store in self.stores.values())

    async def wait_synced(self) -> None:
        """Wait until the initial list is complete."""
        for event in self._sync_events():
            await event.wait()

    def _sync_events(self) -> list[asyncio.Event]:
        return [
            watch.store.known if watch.optional else watch.store.synced for watch in self.watches
        ]

    def _store(self, key: str) -> Store:
        return self.stores[None if None in self.stores else key.partition("/")[0]]


class Caches:
    """All caches of a process."""

    def __init__(self, client: Client, namespaces: Sequence[str] = ()) -> None:
        """Take the watched namespaces; default: all."""
        self._client = client
        self.namespaces = tuple(namespaces)
        self._caches: dict[object, Cache] = {}
        self._budget = ByteBudget(self._max_unrequested)
        self._running = False

    def __iter__(self) -> Iterator[Cache]:
        return iter(self._caches.values())

    def of(self, resource: Resource, *, optional: bool = False) -> Cache:
        """Return the cache of all objects of a resource in the watched namespaces.

        Of Secrets, it has only the metadata. The cache is `optional` if all its users request an
        optional one. Raises RuntimeError for a new cache that would never be filled.
        """
        cache = self.part_of(resource, optional=optional)
        cache.filter.keep_all()
        return cache

    def part_of(
        self, resource: Resource, *, optional: bool = False, labels: str | None = None
    ) -> Cache:
        """Return the cache of a resource, with what its `filter` keeps.

        With a label selector `labels`, a separate cache of those objects.
        """
        selected = {"labels": labels, "metadata_only": is_secret(resource), "optional": optional}
        cache = self._get((resource, labels), resource, namespaces=self.namespaces, **selected)
        for watch in cache.watches:
            watch.optional &= optional
        return cache

    def one(self, resource: Resource, name: str, namespace: str | None = None) -> Cache:
        """Return a cache of a single object, in any namespace.

        A Secret is cached with its contents.
        """
        namespaces = (namespace,) if namespace else ()
        cache = self._get(
            (resource, namespace, name),
            resource,
            namespaces=namespaces,
            fields=f"metadata.name={name}",
        )
        cache.filter.keep_all()
        return cache

    async def run(self) -> None:
        """List and watch everything until cancelled: first the reconciled objects.

        How many there are decides how much is kept of their children. Return at once if there are
        no caches.
        """
        self._running = True
        owners = self._owners()
        async with asyncio.TaskGroup() as group:
            self._watch(group, owners)
            with suppress(TimeoutError):
                async with asyncio.timeout(OWNERS_FIRST):
                    for store in (store for cache in owners for store in cache.stores.values()):
                        await store.known.wait()
            self._watch(group, [cache for cache in self if cache not in owners])

    def _watch(self, group: asyncio.TaskGroup, caches: Sequence[Cache]) -> None:
        for cache in caches:
            for watch in cache.watches:
                group.create_task(watch.run(), name=f"watch {cache.resource.plural}")

    def _owners(self) -> list[Cache]:
        """Return the caches of the objects whose children are kept."""
        kinds = {kind for cache in self for kind in cache.filter.owners}
        return [cache for cache in self if (cache.resource.group, cache.resource.kind) in kinds]

    def _max_unrequested(self) -> int:
        owners = sum(len(store) for cache in self._owners() for store in cache.stores.values())
        return MAX_UNREQUESTED + owners * MAX_UNREQUESTED_EACH

    async def wait_synced(self) -> None:
        """Wait until all caches are synced."""
        for cache in self:
            await cache.wait_synced()

    def unsync(self) -> None:
        """Mark all caches as not synced until everything is listed again."""
        for store in (store for cache in self for store in cache.stores.values()):
            store.synced.clear()
            store.known.clear()

    def _get(self, key: object, resource: Resource, **options: Any) -> Cache:
        if key not in self._caches:
            if self._running:
                raise RuntimeError(
                    f"{resource.plural} are not watched: ask for caches before the manager runs"
                )
            self._caches[key] = Cache(self._client, resource, budget=self._budget, **options)
        return self._caches[key]


def is_secret(resource: Resource) -> bool:
    """Return whether objects of a resource have contents that the cache does not keep."""
    return (resource.group, resource.plural) == ("", "secrets")
