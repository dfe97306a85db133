"""One object that is watched by name, which needs permission on this object only."""

from collections.abc import Callable
from typing import Never, Self

from kube.client import Client
from kube.resource import JsonObject, Resource
from kube.store import Change, Store
from kube.watch import Watch


class AbsentError(ValueError):
    """The object does not exist, or is not known yet; the message has its name and the reason."""


class WatchedObject:
    """The last known state of one object."""

    def __init__(self, watch: Watch, namespace: str, name: str) -> None:
        """Take a watch that follows this object."""
        self._watch = watch
        self._key = watch.resource.key(namespace, name)

    @classmethod
    def of(cls, client: Client, resource: Resource, namespace: str, name: str) -> Self:
        """Return an object with its own watch, which `run` runs."""
        store, by_name = Store(resource), f"metadata.name={name}"
        return cls(
            Watch(client, resource, store, namespace=namespace, fields=by_name), namespace, name
        )

    def __str__(self) -> str:
        return f"{self._watch.resource.kind} {self._key}"

    @property
    def is_known(self) -> bool:
        """Whether it is known that the object exists or does not exist."""
        return self._watch.store.known.is_set()

    def get(self) -> JsonObject:
        """Return a private copy of the object. Raises AbsentError if there is none."""
        object = self._watch.store.get(self._key)
        if object is None:
            raise AbsentError(f"{self}: {self.absence()}")
        return object

    def absence(self) -> str:
        """Return the reason why there is no object."""
        return "does not exist" if self.is_known else self._watch.problem or "not read yet"

    def subscribe(self, callback: Callable[[], None]) -> None:
        """Call `callback` after each change of the object."""

        def on_change(_: Change) -> None:
            callback()

        self._watch.store.subscribers.append(on_change)

    async def run(self) -> Never:
        """Watch the object until cancelled."""
        await self._watch.run()
