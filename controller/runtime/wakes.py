"""Which requests a change wakes."""

from collections.abc import Callable, Iterable

from controller.runtime.result import Request
from kube.changes import Change
from kube.resource import Resource
from kube.store import Owner

Wakes = Callable[[Change], Iterable[Request]]


def itself(change: Change) -> Iterable[Request]:
    """Wake the changed object, whatever changed."""
    return (Request.of(change.key),)


def primary(change: Change) -> Iterable[Request]:
    """Wake the changed object unless only its status changed: what we write there must not wake us."""
    old, new = change.old, change.new
    if (
        old is None
        or new is None
        or old.generation != new.generation
        or old.deleting != new.deleting
        or old.labels != new.labels
        or old.annotations_hash != new.annotations_hash
    ):
        return (Request.of(change.key),)
    return ()


def owner(resource: Resource, change: Change, by: Owner) -> Request:
    """Return the request for the object of `resource` that controls, or controlled, the changed one."""
    namespace = change.key.rpartition("/")[0] if resource.namespaced else ""
    return Request(namespace or None, by.name)


def always(request: Request) -> Wakes:
    """Wake one request, whatever changed."""

    def wakes(change: Change) -> Iterable[Request]:
        del change
        return (request,)

    return wakes
