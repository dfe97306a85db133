"""Event sources: For, Owns and Watches, with predicates and mappers."""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from controller.runtime.cache import Cache
from controller.runtime.kind import PlannedKind, T
from controller.runtime.types import ReconcileRequest
from kube.index import IndexFunction, values_of
from kube.resource import JsonObject, Resource
from kube.store import Change

Predicate = Callable[[Change], bool]
Mapper = Callable[[Change], Iterable[ReconcileRequest]]


def any_change(change: Change) -> bool:
    """Return True: every change counts, status changes included."""
    del change
    return True


def spec_changed(change: Change) -> bool:
    """Return whether more than the status changed: spec, deletion, labels or annotations.

    One version that is read by a newer schema, with more fields, is a change, too.
    """
    old, new = change.old, change.new
    if old is None or new is None:
        return True
    return (
        old.generation != new.generation
        or old.resource_version == new.resource_version
        or old.deleting != new.deleting
        or old.labels != new.labels
        or old.annotations_hash != new.annotations_hash
    )


class For(NamedTuple):
    """The reconciled objects: a change enqueues the object itself.

    By default status changes are ignored.

    Every object is also reconciled every ten hours.
    """

    resource: Resource
    predicate: Predicate = spec_changed


class Owns(NamedTuple):
    """Their children: any change, status included, enqueues the controlling owner."""

    resource: Resource


class Watches(NamedTuple):
    """Any other objects: a change enqueues what `map` returns for the old and the new state."""

    resource: Resource
    map: Callable[[JsonObject], Iterable[ReconcileRequest]]


def itself(change: Change) -> Iterable[ReconcileRequest]:
    """Map a change to its own object."""
    return (ReconcileRequest.of(change.key),)


def always(request: ReconcileRequest) -> Mapper:
    """Return a mapper of every change to one request."""
    return lambda change: (request,)


def owner_of(resource: Resource) -> Mapper:
    """Return a mapper of a child to the object of `resource` that controls or controlled it."""

    def requests(change: Change) -> Iterable[ReconcileRequest]:
        namespace = ReconcileRequest.of(change.key).namespace if resource.namespaced else None
        owners = [entry.owner for entry in change.entries if entry.owner is not None]
        target = resource.group, resource.kind
        names = [each.name for each in owners if (each.group, each.kind) == target]
        return [ReconcileRequest(namespace, name) for name in dict.fromkeys(names)]

    return requests


def map_objects(map: Callable[[JsonObject], Iterable[ReconcileRequest]]) -> Mapper:
    """Return a mapper by a function of an object: of its old and its new state."""

    def requests(change: Change) -> Iterable[ReconcileRequest]:
        return dict.fromkeys(request for entry in change.entries for request in map(entry.object))

    return requests


def readers_of(
    kind: PlannedKind[T], primaries: Cache, indexes: Mapping[str, IndexFunction]
) -> Mapper:
    """Return a mapper of an object that a planner reads to the objects that share an index value.

    Without a common index, these are all objects in its namespace.
    """
    common = {name: function for name, function in indexes.items() if name in kind.indexes}

    def keys(change: Change) -> Iterable[str]:
        if not common:
            return primaries
        objects = [entry.object for entry in change.entries]
        values = {
            (name, value)
            for name, index in common.items()
            for object in objects
            for value in values_of(index, object)
        }
        return {
            key for name, value in values for key in primaries.index(kind.index_name(name), value)
        }

    def requests(change: Change) -> Iterable[ReconcileRequest]:
        namespace = ReconcileRequest.of(change.key).namespace
        return [
            request
            for request in map(ReconcileRequest.of, keys(change))
            if None in (namespace, request.namespace) or namespace == request.namespace
        ]

    return requests
