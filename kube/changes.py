"""Brings what the API server says into a Store, and tells subscribers what that changed."""

from collections.abc import Callable
from typing import Literal, NamedTuple

from kube.store import Entry, Object, Store


class Change(NamedTuple):
    """One difference between what a Store knew and what it knows now."""

    kind: Literal["added", "modified", "deleted"]
    key: str
    old: Entry | None
    new: Entry | None
    initial: bool
    """Whether it was found by listing; it may have happened long ago."""


class Changes:
    """The only writer of a Store. While listing, objects are found; what was not found by the end is gone."""

    def __init__(self, store: Store) -> None:
        self.subscribers: list[Callable[[Change], None]] = []
        self.on_served: list[Callable[[], None]] = []
        """Called when the API server has the resource, and before it had not, or the other way round."""
        self.on_listed: list[Callable[[], None]] = []
        """Called when everything that exists is known: what came and went unseen is never told."""
        self._store = store
        self._unfound: set[str] | None = None

    @property
    def listing(self) -> bool:
        """Whether a listing has begun and not ended."""
        return self._unfound is not None

    def begin_listing(self) -> None:
        """Expect every object that exists, in any order, and then `end_listing`."""
        self._unfound = set(self._store.keys())

    def end_listing(self, version: str) -> None:
        """Remove what was not found: everything that existed at `version` was."""
        gone = {key: self._store.remove(key) for key in self._unfound or ()}
        self.reached(version)
        for key, old in gone.items():
            self._tell("deleted", key, old, None)
        self._unfound = None
        self._store.synced.set()
        self._served(True)
        for tell in self.on_listed:
            tell()

    def vanished(self) -> None:
        """Remove everything: the API server does not have the resource, so none of it exists."""
        self.begin_listing()
        for key in tuple(self._unfound or ()):
            self._remove(key)
        self._served(False)

    def reached(self, version: str) -> None:
        """Note that everything up to this version is in the store."""
        self._store.resource_version = int(version)

    def put(self, object: Object) -> None:
        """Take an object that exists."""
        key = self._store.key_of(object)
        if self._unfound is not None:
            self._unfound.discard(key)
        old = self._store.entry(key)
        metadata = object["metadata"]
        if old and old.uid == metadata["uid"]:
            if old.resource_version != int(metadata["resourceVersion"]):
                self._tell("modified", key, old, self._store.put(object))
            return
        if old:  # deleted and made again, unseen
            self._remove(key)
        self._tell("added", key, None, self._store.put(object))

    def remove(self, object: Object) -> None:
        """Take the last state of an object that exists no more."""
        self._remove(self._store.key_of(object))

    def _served(self, is_served: bool) -> None:
        flips = self._store.known.is_set() and self._store.absent == is_served
        self._store.absent = not is_served
        self._store.known.set()
        for tell in self.on_served if flips else ():
            tell()

    def _remove(self, key: str) -> None:
        if old := self._store.remove(key):
            self._tell("deleted", key, old, None)

    def _tell(
        self, kind: Literal["added", "modified", "deleted"], key: str, old: Entry | None, new: Entry | None
    ) -> None:
        change = Change(kind, key, old, new, initial=self._unfound is not None)
        for tell in self.subscribers:
            tell(change)
