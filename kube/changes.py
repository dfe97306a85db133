"""Turns what the API server sends into changes of a Store, and notifies subscribers."""

from collections.abc import Callable
from typing import Literal, NamedTuple

from kube.store import Entry, Object, Store

Kind = Literal["added", "modified", "deleted"]


class Change(NamedTuple):
    """One difference between what a Store knew and what it knows now."""

    kind: Kind
    key: str
    old: Entry | None
    new: Entry | None
    initial: bool
    """Whether it was found by listing; it may have happened long ago."""


class Changes:
    """The only writer of a Store. Listing finds all objects that exist; those not found by its end are deleted."""

    def __init__(self, store: Store) -> None:
        self.subscribers: list[Callable[[Change], None]] = []
        self.on_served: list[Callable[[], None]] = []
        """Called when the API server begins to serve the resource, or ceases to."""
        self._store = store
        self._unfound: set[str] | None = None
        """While listing, the keys that were not found so far."""

    def begin_listing(self) -> None:
        """Expect every object that exists, in any order, and then `end_listing`."""
        self._unfound = set(self._store.keys())

    def end_listing(self, version: str) -> None:
        """Delete what was not found: everything that existed at `version` was."""
        gone = {key: self._store.remove(key) for key in self._unfound or ()}
        self.reached(version)
        for key, old in gone.items():
            self._notify("deleted", key, old, None)
        self._unfound = None
        self._store.synced.set()
        self._served(True)

    def vanished(self) -> None:
        """Delete everything: the API server no longer serves the resource."""
        self.begin_listing()
        for key in self._unfound or ():
            self._remove(key)
        self._served(False)

    def reached(self, version: str) -> None:
        """Note that everything up to this version is in the store."""
        self._store.resource_version = int(version)

    def put(self, object: Object) -> None:
        """Store an object that exists."""
        store = self._store
        key = store.key_of(object)
        if self._unfound:
            self._unfound.discard(key)
        if (old := store.entry(key)) is None:
            self._notify("added", key, None, store.put(object, key))
            return
        metadata = object["metadata"]
        if old.uid != metadata["uid"]:  # deleted and created again, unseen
            self._remove(key)
            self._notify("added", key, None, store.put(object, key))
        elif old.resource_version != int(metadata["resourceVersion"]):
            self._notify("modified", key, old, store.put(object, key))

    def remove(self, object: Object) -> None:
        """Delete an object, given its last state."""
        self._remove(self._store.key_of(object))

    def _served(self, is_served: bool) -> None:
        flips = self._store.known.is_set() and self._store.absent == is_served
        self._store.absent = not is_served
        self._store.known.set()
        for notify in self.on_served if flips else ():
            notify()

    def _remove(self, key: str) -> None:
        if old := self._store.remove(key):
            self._notify("deleted", key, old, None)

    def _notify(self, kind: Kind, key: str, old: Entry | None, new: Entry | None) -> None:
        change = Change(kind, key, old, new, self._unfound is not None)
        for notify in self.subscribers:
            notify(change)
