"""Waits for an expected state by watching, so that no test of the controller sleeps."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from controller.runtime.cache import Cache
from kube.client import Client
from kube.resource import JsonObject, Resource
from kube.store import Change

WITHIN = 60.0  # seconds; a busy machine needs more than 20
COLLECTED_WITHIN = 180.0  # seconds; the garbage collector discovers new kinds every 30 s


class Observer:
    """Watches the objects of one namespace."""

    def __init__(self, client: Client, namespace: str, resources: Sequence[Resource]) -> None:
        self.namespace = namespace
        self.history: list[tuple[str, Change]] = []
        self.caches = {each: Cache(client, each, namespaces=(namespace,)) for each in resources}
        self._changed = asyncio.Event()
        for resource, cache in self.caches.items():
            cache.filter.keep_all()
            cache.subscribe(self._noter(resource))

    def get(self, resource: Resource, name: str) -> JsonObject | None:
        """Return an object as it was last observed."""
        return self.caches[resource].get(f"{self.namespace}/{name}")

    async def until(
        self,
        resource: Resource,
        name: str,
        holds: Callable[[JsonObject], bool] = lambda _: True,
        within: float = WITHIN,
    ) -> JsonObject:
        """Wait until an object exists for which `holds` is true, and return it."""
        found: list[JsonObject] = []

        def observed() -> bool:
            found[:] = [
                object
                for object in [self.get(resource, name)]
                if object is not None and holds(object)
            ]
            return bool(found)

        await self._until(
            observed, lambda: f"{resource.kind} {name}: {self.get(resource, name)}", within
        )
        return found[0]

    async def until_gone(self, resource: Resource, name: str) -> None:
        """Wait until an object no longer exists."""
        await self._until(
            lambda: self.get(resource, name) is None,
            lambda: f"{resource.kind} {name} is there",
            COLLECTED_WITHIN,
        )

    async def until_any(
        self, resource: Resource, holds: Callable[[JsonObject], bool]
    ) -> JsonObject:
        """Wait until some object of a resource is as expected, and return it."""
        cache, found = self.caches[resource], list[JsonObject]()

        def observed() -> bool:
            found[:] = [each for each in map(cache.get, cache) if each is not None and holds(each)]
            return bool(found)

        await self._until(observed, lambda: f"none of {len(list(cache))} {resource.plural}")
        return found[0]

    async def _until(
        self, observed: Callable[[], bool], otherwise: Callable[[], str], within: float = WITHIN
    ) -> None:
        try:
            async with asyncio.timeout(within):
                while not observed():
                    await self._changed.wait()
        except TimeoutError:
            raise AssertionError(f"not observed within {within:g} s: {otherwise()}") from None

    def _noter(self, resource: Resource) -> Callable[[Change], None]:
        def on_change(change: Change) -> None:
            self.history.append((resource.kind, change))
            changed, self._changed = self._changed, asyncio.Event()
            changed.set()

        return on_change


@asynccontextmanager
async def observing(
    client: Client, namespace: str, resources: Sequence[Resource]
) -> AsyncIterator[Observer]:
    """Observe some resources of a namespace."""
    observer = Observer(client, namespace, resources)
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(watch.run())
            for cache in observer.caches.values()
            for watch in cache.watches
        ]
        for cache in observer.caches.values():
            await cache.wait_synced()
        try:
            yield observer
        finally:
            for task in tasks:
                task.cancel()
