"""Brings what the API server says into a Store, and tells subscribers what that changed."""

from collections.abc import Callable, Sized
from typing import Literal, NamedTuple

from kube.resource import Resource
from kube.store import Entry, Object, Owner, Store

Kind = Literal["added", "modified", "deleted"]


class Change(NamedTuple):
    """One difference between what a Store knew and what it knows now."""

    kind: Kind
    key: str
    old: Entry | None
    new: Entry | None
    initial: bool
    """Whether it was found by listing; it may have happened long ago."""


Subscriber = Callable[[Change], None]
OfOwner = Callable[[Change, Owner], None]


class Changes:
    """The only writer of a Store. While listing, objects are found; what was not found by the end is gone."""

    def __init__(self, store: Store) -> None:
        self.subscribers: list[Subscriber] = []
        self.on_deleted: list[Callable[[str], None]] = []
        """Called with the key of what is gone, before anybody else hears of it."""
        self.waiting: list[tuple[Sized, Subscriber]] = []
        """Called with each change while the first is not empty, after all others: mostly nobody waits."""
        self.on_served: list[Callable[[], None]] = []
        """Called when the API server has the resource, and before it had not, or the other way round."""
        self.on_listed: list[Callable[[], None]] = []
        """Called when everything that exists is known: what came and went unseen is never told."""
        self.listing = False
        """Whether a listing has begun and not ended."""
        self._by_owner: dict[tuple[str, str], list[OfOwner]] = {}  # by its group and kind: most kinds own nothing here
        self._store = store
        self._unfound: set[str] = set()

    def subscribe_owned(self, by: Resource, callback: OfOwner) -> None:
        """Call `callback` with each change of what one of `by` controls, or controlled, and with that owner."""
        self._by_owner.setdefault((by.group, by.kind), []).append(callback)

    def begin_listing(self) -> None:
        """Expect every object that exists, in any order, and then `end_listing`."""
        self.listing = True
        self._unfound = set(self._store.keys())

    def end_listing(self, version: str) -> None:
        """Remove what was not found: everything that existed at `version` was."""
        gone = {key: self._store.remove(key) for key in self._unfound}
        self.reached(version)
        for key, old in gone.items():
            self._tell("deleted", key, old, None)
        self.listing, self._unfound = False, set()
        self._store.synced.set()
        self._served(True)
        for tell in self.on_listed:
            tell()

    def vanished(self) -> None:
        """Remove everything: the API server does not have the resource, so none of it exists."""
        self.begin_listing()
        for key in self._unfound:
            self._remove(key)
        self._served(False)

    def reached(self, version: str) -> None:
        """Note that everything up to this version is in the store."""
        self._store.resource_version = int(version)

    def put(self, object: Object) -> None:
        """Take an object that exists."""
        store = self._store
        key = store.key_of(object)
        if self.listing:
            self._unfound.discard(key)
        if (old := store.entry(key)) is None:
            self._tell("added", key, None, store.put(object, key))
            return
        metadata = object["metadata"]
        if old.uid != metadata["uid"]:  # deleted and made again, unseen
            self._remove(key)
            self._tell("added", key, None, store.put(object, key))
        elif old.resource_version != int(metadata["resourceVersion"]):
            self._tell("modified", key, old, store.put(object, key))

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

    def _tell(self, kind: Kind, key: str, old: Entry | None, new: Entry | None) -> None:
        for tell_key in self.on_deleted if new is None else ():
            tell_key(key)
        change = Change(kind, key, old, new, self.listing)
        before = None if old is None else old.owner
        now = None if new is None else new.owner
        if before is not None and before != now:
            self._tell_of(before, change)
        if now is not None:
            self._tell_of(now, change)
        for tell in self.subscribers:
            tell(change)
        for those_who_wait, tell in self.waiting:
            if those_who_wait:
                tell(change)

    def _tell_of(self, owner: Owner, change: Change) -> None:
        for tell in self._by_owner.get((owner.api_version.rpartition("/")[0], owner.kind), ()):
            tell(change, owner)
