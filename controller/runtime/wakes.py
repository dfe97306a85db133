"""Which requests a change wakes."""

from collections.abc import Callable, Iterable

from controller.runtime.result import Request
from kube.changes import Change
from kube.resource import Resource

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


def owner(resource: Resource) -> Wakes:
    """Wake the object of `resource` that controls, or controlled, the changed one."""

    def wakes(change: Change) -> Iterable[Request]:
        before = change.old.owner if change.old else None
        now = change.new.owner if change.new else None
        woken = []
        for each in (now,) if now == before else (before, now):
            if each is None or each.kind != resource.kind or each.api_version.rpartition("/")[0] != resource.group:
                continue
            woken.append(Request(Request.of(change.key).namespace if resource.namespaced else None, each.name))
        return woken

    return wakes


def always(request: Request) -> Wakes:
    """Wake one request, whatever changed."""

    def wakes(change: Change) -> Iterable[Request]:
        del change
        return (request,)

    return wakes
