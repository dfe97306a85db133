"""One reconcile's snapshot: the owner, the caches, and newer answers of the API server."""

from collections.abc import Mapping, Sequence
from typing import Any

from controller.runtime.cache import Cache, is_secret
from controller.runtime.kind import PlannedKind
from controller.runtime.plan import Observed
from controller.runtime.status import readable
from controller.runtime.types import ReconcileRequest
from kube.client import Client
from kube.errors import NotFound
from kube.index import values_of
from kube.resource import JsonObject, Resource
from kube.store import controller_of


class Owner:
    """The reconciled object, as read at the start of the reconcile."""

    def __init__(self, request: ReconcileRequest, resource: Resource, object: JsonObject) -> None:
        metadata = object["metadata"]
        self.request = request
        self.resource = resource
        self.object = object
        self.uid: str = metadata["uid"]
        self.generation: int = metadata.get("generation", 0)
        self.status = readable(object.get("status"))
        self.finalizers: list[str] = metadata.get("finalizers") or []
        self.is_deleting = "deletionTimestamp" in metadata
        self.reference = controller_reference(resource, object)


class Snapshot(Observed):
    """The snapshot of one reconcile; decodes each object once."""

    def __init__(
        self,
        request: ReconcileRequest,
        kind: PlannedKind[Any],
        caches: Mapping[Resource, Cache],
        settings: Mapping[str, Any],
    ) -> None:
        self.settings = settings
        self.obstacles = {}
        self.request = request
        self._key = request.key
        self._kind = kind
        self._caches = caches
        self._objects: dict[tuple[Resource, str], JsonObject | None] = {}
        # Keys of objects that are newer than the caches:
        self._answered: dict[Resource, set[str]] = {}
        self.omitted: set[tuple[Resource, str]] = set()
        """The requested children that the caches omit, until they are recorded."""

    @property
    def owner(self) -> Owner | None:
        """The reconciled object; None if it was deleted."""
        stored = self.get(self._kind.resource, self._key)
        return None if stored is None else Owner(self.request, self._kind.resource, stored)

    def child(
        self, resource: Resource, name: str, namespace: str | None = None
    ) -> JsonObject | None:
        """Return a child of the object; None if there is none, or if another owner has the name."""
        key = resource.key(self.request.namespace or namespace, name)
        is_omitted = self._caches[resource].request(key)
        if is_omitted and key not in self._answered.get(resource, ()):
            self.omitted.add((resource, key))
            return None
        object = self.get(resource, key)
        owner = self.get(self._kind.resource, self._key)
        return object if object and owner and is_controlled_by(object, owner) else None

    def find(self, resource: Resource, index: str, value: str) -> Sequence[JsonObject]:
        """Return the objects in the same namespace, or in none, whose index `index` has `value`.

        For a cluster-scoped object: in any namespace.
        """
        indexes = (
            self._kind.reads[resource].indexes
            if resource in self._kind.reads
            else self._kind.indexes
        )
        keys = set(self._caches[resource].index(self._kind.index_name(index), value))
        for key in self._answered.get(resource, ()):
            answer = self._objects[resource, key]
            is_found = answer is not None and value in values_of(indexes[index], answer)
            (keys.add if is_found else keys.discard)(key)
        near = {None, self.request.namespace}
        objects = (
            self.get(resource, key)
            for key in sorted(keys)
            if self.request.namespace is None or ReconcileRequest.of(key).namespace in near
        )
        return [each for each in objects if each is not None]

    def serves(self, resource: Resource) -> bool:
        """Return whether the API server has this resource."""
        return resource in self._caches and self._caches[resource].is_served

    def get(self, resource: Resource, key: str) -> JsonObject | None:
        """Return the newest known state of an object."""
        place = (resource, key)
        if place not in self._objects:
            self._objects[place] = self._caches[resource].get(key)
        return self._objects[place]

    def record(self, resource: Resource, key: str, object: JsonObject | None) -> None:
        """Record the API server's latest answer for an object; None if it does not exist."""
        if object is not None:
            object["metadata"].pop("managedFields", None)
        if object is not None and is_secret(resource):
            object = {field: object[field] for field in ("apiVersion", "kind", "metadata")}
        self.omitted.discard((resource, key))
        self._objects[resource, key] = object
        self._answered.setdefault(resource, set()).add(key)


def controller_reference(resource: Resource, owner: JsonObject) -> JsonObject:
    """Return the owner reference that makes an object a child of `owner`."""
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def is_controlled_by(object: JsonObject, owner: JsonObject) -> bool:
    """Return whether an object is a child of `owner`."""
    controller = controller_of(object["metadata"])
    return controller is not None and controller.uid == owner["metadata"]["uid"]


async def live(client: Client, resource: Resource, key: str) -> JsonObject | None:
    """Return an object from the API server, or None."""
    namespace, name = ReconcileRequest.of(key)
    try:
        return await client.get(resource, name, namespace)
    except NotFound:
        return None
