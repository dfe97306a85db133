"""The caches of a process: each resource is watched once, whoever needs it."""

import asyncio
from collections.abc import Callable, Iterator, Sequence, Sized
from typing import Never

from controller.runtime.claims import FIELD_MANAGER
from kube.changes import Change
from kube.client import Client
from kube.resource import Resource
from kube.store import Entry, IndexFunction, Object, Owner, Store
from kube.watch import Watch

Key = tuple[Resource, str | None, str | None, bool, str | None]


class Cache:
    """The objects of one resource, in the namespaces that are looked at."""

    def __init__(
        self,
        client: Client,
        resource: Resource,
        *,
        namespaces: Sequence[str] = (),
        labels: str | None = None,
        fields: str | None = None,
        metadata_only: bool = False,
        optional: bool = False,
    ) -> None:
        """Look at all namespaces, or at some of them only, each with a watch of its own; `labels` is a selector.

        The API server may be without an `optional` resource: then it is as complete as it can be.
        """
        self.resource = resource
        self.optional = optional
        self.labels = labels
        looked_at = namespaces if namespaces and resource.namespaced else (None,)
        self.stores = {namespace: Store(resource, manager=FIELD_MANAGER) for namespace in looked_at}
        self.watches = [
            Watch(
                client,
                resource,
                store,
                namespace=namespace,
                labels=labels,
                fields=fields,
                metadata_only=metadata_only,
            )
            for namespace, store in self.stores.items()
        ]

    def __len__(self) -> int:
        return sum(map(len, self.stores.values()))

    def entry(self, key: str) -> Entry | None:
        """Return what is known of one object, without decoding it."""
        store = self._store(key)
        return None if store is None else store.entry(key)

    def get(self, key: str) -> Object | None:
        """Return a private copy of one object, or None."""
        store = self._store(key)
        return None if store is None else store.get(key)

    def __iter__(self) -> Iterator[str]:
        """Yield the keys of all objects."""
        for store in self.stores.values():
            yield from store.keys()

    def index(self, name: str, value: str) -> Iterator[str]:
        """Yield the keys of the objects that an index has under `value`."""
        for store in self.stores.values():
            yield from store.index(name, value)

    def add_index(self, name: str, function: IndexFunction) -> None:
        """Keep an index from now on."""
        for store in self.stores.values():
            store.add_index(name, function)

    def has_seen(self, key: str, resource_version: int) -> bool:
        """Tell whether the cache knows of this version of an object, or of a later one, or of its end."""
        store = self._store(key)
        if store is None or store.resource_version >= resource_version:
            return True
        entry = store.entry(key)
        return entry is not None and entry.resource_version >= resource_version

    def subscribe(self, callback: Callable[[Change], None]) -> None:
        """Call `callback` with each change, once it is here."""
        for watch in self.watches:
            watch.subscribe(callback)

    def subscribe_owned(self, by: Resource, callback: Callable[[Change, Owner], None]) -> None:
        """Call `callback` with each change of what one of `by` controls, or controlled, and with that owner."""
        for watch in self.watches:
            watch.subscribe_owned(by, callback)

    def subscribe_while(self, some: Sized, callback: Callable[[Change], None]) -> None:
        """Call `callback` with each change that comes while there are `some`, after all others."""
        for watch in self.watches:
            watch.subscribe_while(some, callback)

    def subscribe_deleted(self, callback: Callable[[str], None]) -> None:
        """Call `callback` with the key of each object that is gone, before anybody else hears of it."""
        for watch in self.watches:
            watch.subscribe_deleted(callback)

    def subscribe_listed(self, callback: Callable[[], None]) -> None:
        """Call `callback` whenever all that exists has been read, once it is here."""
        for watch in self.watches:
            watch.subscribe_listed(callback)

    def subscribe_served(self, callback: Callable[[], None]) -> None:
        """Call `callback` when the API server begins to have the resource, or ends."""
        for watch in self.watches:
            watch.subscribe_served(callback)

    @property
    def is_synced(self) -> bool:
        """Whether all that existed at the start is here."""
        return all(
            store.synced.is_set() or (self.optional and store.known.is_set() and store.absent)
            for store in self.stores.values()
        )

    @property
    def is_served(self) -> bool:
        """Whether the API server has the resource, as far as is known."""
        return not any(store.absent for store in self.stores.values())

    async def synced(self) -> None:
        """Wait until all that existed at the start is here."""
        for store in self.stores.values():
            await (store.known if self.optional else store.synced).wait()

    def _store(self, key: str) -> Store | None:
        return self.stores[None] if None in self.stores else self.stores.get(key.partition("/")[0])


class Caches:
    """All caches of a process."""

    def __init__(self, client: Client, namespaces: Sequence[str] = ()) -> None:
        """Take the namespaces that are looked at; none means all."""
        self._client = client
        self._namespaces = tuple(namespaces)
        self._caches: dict[Key, Cache] = {}
        self._running = False

    def __iter__(self) -> Iterator[Cache]:
        return iter(self._caches.values())

    def of(
        self, resource: Resource, *, metadata_only: bool = False, optional: bool = False, labels: str | None = None
    ) -> Cache:
        """Return the cache of a resource, in all namespaces that the process looks at; of Secrets without contents.

        With a selector by `labels` it is a cache of its own, of those objects only. It is `optional` if everybody who
        asks for it can do without.
        """
        metadata_only = metadata_only or is_secret(resource)
        key = (resource, None, None, metadata_only, labels)
        if self._is_new(key):
            self._caches[key] = Cache(
                self._client,
                resource,
                namespaces=self._namespaces,
                labels=labels,
                metadata_only=metadata_only,
                optional=optional,
            )
        self._caches[key].optional &= optional
        return self._caches[key]

    def one(self, resource: Resource, name: str, namespace: str | None = None, *, metadata_only: bool = False) -> Cache:
        """Return a cache of a single object, whatever namespaces the process looks at."""
        key = (resource, namespace, name, metadata_only, None)
        if self._is_new(key):
            self._caches[key] = Cache(
                self._client,
                resource,
                namespaces=(namespace,) if namespace else (),
                fields=f"metadata.name={name}",
                metadata_only=metadata_only,
            )
        return self._caches[key]

    def _is_new(self, key: Key) -> bool:
        """Tell whether there is no such cache yet; one that nobody would fill is an error."""
        if key not in self._caches and self._running:
            raise RuntimeError(f"{key[0].plural} are not watched: caches are asked for before the runtime runs")
        return key not in self._caches

    async def run(self) -> Never:
        """Keep all caches right until cancelled."""
        self._running = True
        async with asyncio.TaskGroup() as group:
            for cache in self:
                for watch in cache.watches:
                    group.create_task(watch.run(), name=f"watch {cache.resource.plural}")
        raise AssertionError("a watch ended by itself")

    async def synced(self) -> None:
        """Wait until everything that existed at the start is here."""
        for cache in self:
            await cache.synced()


def is_secret(resource: Resource) -> bool:
    """Tell whether the contents of these objects are nothing to keep in memory or to plan with."""
    return (resource.group, resource.plural) == ("", "secrets")
