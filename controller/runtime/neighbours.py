"""Whom other people's objects wake: those that read them, and those that wait for their names."""

from collections.abc import Iterable, Mapping
from typing import Any

from controller.runtime.caches import Cache
from controller.runtime.guard import NameTakenError
from controller.runtime.planned_kind import By, PlannedKind
from controller.runtime.result import Request
from controller.runtime.view import index_name
from controller.runtime.wakes import Wakes
from kube.changes import Change
from kube.resource import Resource


def readers(kind: PlannedKind[Any], primaries: Cache, indexes: Mapping[str, By]) -> Wakes:
    """Wake the objects of a kind that share a value with what their planner reads, or else all in its namespace."""
    common = {name: function for name, function in indexes.items() if name in kind.indexes}

    def keys(change: Change) -> Iterable[str]:
        if not common:
            return primaries
        objects = [each.object for each in (change.old, change.new) if each is not None]
        values = {(name, value) for name, by in common.items() for each in objects for value in by(each)}
        return {key for name, value in values for key in primaries.index(index_name(kind, name), value)}

    def wakes(change: Change) -> Iterable[Request]:
        namespace = Request.of(change.key).namespace
        return [each for each in map(Request.of, keys(change)) if namespace in (None, each.namespace)]

    return wakes


class NamesAwaited:
    """Names that are taken, and who waits for each to change hands."""

    def __init__(self) -> None:
        self.awaited: dict[tuple[Resource, str], set[Request]] = {}

    def note(self, error: Exception, request: Request) -> None:
        """Let a request wait for the name that an error is about, if it is about one."""
        if isinstance(error, NameTakenError):
            self.awaited.setdefault(error.place, set()).add(request)

    def forget(self, request: Request) -> None:
        """Let a request that is gone wait no more."""
        for place, waiters in list(self.awaited.items()):
            waiters.discard(request)
            if not waiters:
                del self.awaited[place]

    def wakes(self, resource: Resource) -> Wakes:
        """Wake whoever waits for the name of the changed object."""

        def wakes(change: Change) -> Iterable[Request]:
            return self.awaited.pop((resource, change.key), ())

        return wakes
