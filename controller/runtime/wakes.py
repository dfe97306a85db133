"""Which requests a change wakes."""

from collections.abc import Callable, Iterator

from controller.runtime.result import Request
from kube.changes import Change
from kube.resource import Resource

Wakes = Callable[[Change], Iterator[Request]]


def itself(change: Change) -> Iterator[Request]:
    """Wake the changed object, whatever changed."""
    yield Request.of(change.key)


def primary(change: Change) -> Iterator[Request]:
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
        yield Request.of(change.key)


def owner(resource: Resource) -> Wakes:
    """Wake the object of `resource` that controls, or controlled, the changed one."""

    def wakes(change: Change) -> Iterator[Request]:
        before = change.old.owner if change.old else None
        now = change.new.owner if change.new else None
        for each in (now,) if now == before else (before, now):
            if each is None or each.kind != resource.kind or each.api_version.rpartition("/")[0] != resource.group:
                continue
            yield Request(Request.of(change.key).namespace if resource.namespaced else None, each.name)

    return wakes


def always(request: Request) -> Wakes:
    """Wake one request, whatever changed."""

    def wakes(change: Change) -> Iterator[Request]:
        del change
        yield request

    return wakes
