"""What one reconcile sees: the caches, and over them what the API server answered in the meantime."""

from collections.abc import Mapping, Sequence
from typing import Any

from controller.runtime.caches import Cache, is_secret
from controller.runtime.parent import is_controlled_by
from controller.runtime.plan import Object
from controller.runtime.planned_kind import PlannedKind
from controller.runtime.result import Request
from controller.runtime.selectors import selects
from kube.resource import Resource


class View:
    """A `Seen` for one object, and the runtime's own way of reading; decodes each object once."""

    def __init__(
        self, request: Request, kind: PlannedKind[Any], caches: Mapping[Resource, Cache], settings: Mapping[str, Any]
    ) -> None:
        self._request = request
        self._kind = kind
        self._caches = caches
        self._settings = settings
        self._place = (kind.resource, request.key)
        self._objects = {self._place: caches[kind.resource].get(request.key)}
        self._answered: dict[Resource, set[str]] = {}  # what is newer than the caches

    @property
    def settings(self) -> Mapping[str, Any]:
        """The settings of the process that planners may depend on."""
        return self._settings

    @property
    def parent(self) -> Object | None:
        """The object itself."""
        return self._objects[self._place]

    def child(self, resource: Resource, name: str) -> Object | None:
        """Return a child of the object, None if there is none or the name is somebody else's."""
        found, parent = self.get(resource, resource.key(self._request.namespace, name)), self.parent
        return found if found and parent and is_controlled_by(found, parent) else None

    def find(self, resource: Resource, index: str, value: str) -> Sequence[Object]:
        """Return the objects in the same namespace, or in none, whose index `index` has `value`."""
        indexes = self._kind.indexes if resource == self._kind.resource else self._kind.read_indexes[resource]
        near, by, labels = {None, self._request.namespace}, indexes[index], self._kind.read_labels.get(resource)
        keys = set(self._caches[resource].index(index_name(self._kind, index), value))
        for key in self._answered.get(resource, ()):
            answer = self._objects[resource, key]
            is_found = answer is not None and selects(labels, None, answer) and value in by(answer)
            (keys.add if is_found else keys.discard)(key)
        found = (self.get(resource, key) for key in sorted(keys) if Request.of(key).namespace in near)
        return [each for each in found if each is not None]

    def serves(self, resource: Resource) -> bool:
        """Tell whether the API server has this resource."""
        return resource in self._caches and self._caches[resource].is_served

    def get(self, resource: Resource, key: str) -> Object | None:
        """Return the newest state that is known of an object."""
        place = (resource, key)
        if place not in self._objects:
            self._objects[place] = self._caches[resource].get(key)
        return self._objects[place]

    def answered(self, resource: Resource, key: str, object: Object | None) -> None:
        """Take what the API server has just said of an object; None if there is none."""
        if object is not None:
            object["metadata"].pop("managedFields", None)
        if object is not None and is_secret(resource):
            object = {field: object[field] for field in ("apiVersion", "kind", "metadata")}
        self._objects[resource, key] = object
        self._answered.setdefault(resource, set()).add(key)


def index_name(kind: PlannedKind[Any], index: str) -> str:
    """Return what an index of a kind is called in a cache, which other kinds use too."""
    return f"{kind.name}/{index}"
