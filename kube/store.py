"""The last known state of all objects of one resource, as JSON that each read decodes."""

import asyncio
import sys
from collections.abc import Callable
from typing import NamedTuple

import orjson

from kube.budget import ByteBudget
from kube.index import IndexFunction, StoreIndex
from kube.resource import JsonObject, Resource, group_version


class OwnerReference(NamedTuple):
    """The owner reference with `controller: true`."""

    api_version: str
    kind: str
    name: str
    uid: str

    @property
    def group(self) -> str:
        """The API group of the owner; empty for the core group."""
        return group_version(self.api_version)[0]


class Entry(NamedTuple):
    """One object as JSON, with the fields that predicates and handlers read without decoding it."""

    raw: bytes
    uid: str
    resource_version: int
    generation: int
    deleting: bool
    owner: OwnerReference | None
    labels: dict[str, str]
    annotations_hash: int

    @property
    def size(self) -> int:
        """The bytes of the object."""
        return len(self.raw)

    @property
    def object(self) -> JsonObject:
        """The object, decoded on each read: a private copy."""
        decoded: JsonObject = orjson.loads(self.raw)
        return decoded


class Change(NamedTuple):
    """One change of a Store: the old and the new entry of an object; None if there is none."""

    key: str
    old: Entry | None
    new: Entry | None
    initial: bool
    """Whether a list found it; then it may have happened long ago."""

    @property
    def entries(self) -> list[Entry]:
        """The old and the new entry, as far as there are."""
        return [entry for entry in (self.old, self.new) if entry is not None]


Keep = Callable[[JsonObject], JsonObject | None]


def whole(object: JsonObject) -> JsonObject | None:
    """Return the object: a store keeps it whole."""
    return object


def never(object: JsonObject) -> bool:
    """Return False: no object waits for a request."""
    del object
    return False


class Store:
    """Objects by key (`namespace/name`, or `name`), with indexes.

    One Watch writes it, all others read.
    """

    def __init__(
        self,
        resource: Resource,
        keep: Keep = whole,
        on_request: Callable[[JsonObject], bool] = never,
        budget: ByteBudget | None = None,
    ) -> None:
        """Store what `keep` returns of each object; None: nothing.

        The objects for which `on_request` returns True are stored whole if they were requested by
        their keys, or if the `budget` has room for them (default: it always has).
        """
        self.resource = resource
        self._keep = keep
        self._on_request = on_request
        self._budget = budget or ByteBudget(lambda: sys.maxsize)
        self._requested: set[str] = set()
        self._unrequested: dict[str, int] = {}  # the bytes of stored objects
        self._omitted: set[str] = set()  # objects without room
        self.synced = asyncio.Event()
        """Set once the initial list is complete."""
        self.known = asyncio.Event()
        """Set once the initial list is complete, or the resource is known not to be served."""
        self.absent = False
        """Whether discovery says that the API server does not serve the resource."""
        self.resource_version = 0
        """The version of the last event, bookmark or list; everything up to it is stored."""
        self._entries: dict[str, Entry] = {}
        self._indexes: dict[str, StoreIndex] = {}
        self.subscribers: list[Callable[[Change], None]] = []
        """Called with each change, after it is stored."""
        self.on_touched: list[Callable[[str], None]] = []
        """Called with the key of each changed object, also of one that is not stored."""
        self.on_served: list[Callable[[], None]] = []
        """Called when the API server starts or stops serving the resource."""
        self.on_new_schema: list[Callable[[], None]] = []
        """Called when the schema of a custom resource may have changed."""
        self._unfound: set[str] | None = None  # during a list: the keys that were not found so far

    def __len__(self) -> int:
        return len(self._entries)

    def keys(self) -> list[str]:
        """Return the current keys of all objects."""
        return list(self._entries)

    def entries(self) -> dict[str, Entry]:
        """Return the current entry of each object, by key."""
        return dict(self._entries)

    def entry(self, key: str) -> Entry | None:
        """Return the entry of one object, without decoding it."""
        return self._entries.get(key)

    def get(self, key: str) -> JsonObject | None:
        """Return a private copy of one object, or None."""
        entry = self._entries.get(key)
        return entry.object if entry else None

    def request(self, key: str) -> bool:
        """Store an object whole at each further change; return whether it must be read until then.

        The request ends with the object.
        """
        if key in self._unrequested or key in self._omitted:
            self._requested.add(key)
            self._budget.give_back(self._unrequested.pop(key, 0))
        return key in self._omitted

    def index(self, name: str, value: str) -> list[str]:
        """Return the keys of the objects with an index value."""
        return list(self._indexes[name].found.get(value, ()))

    def add_index(self, name: str, function: IndexFunction) -> None:
        """Add an index.

        `function` gets an object and returns its index values.
        """
        if name in self._indexes or self._entries:
            raise ValueError(
                f"index {name} of {self.resource.plural}: there is one, or there are objects "
                "already"
            )
        self._indexes[name] = StoreIndex(function)

    def begin_listing(self) -> None:
        """Expect a `put` of every object that exists, in any order, and then `end_listing`."""
        self._unfound = self._entries.keys() | self._omitted

    def end_listing(self, version: int) -> None:
        """Remove the objects that were not found; the store then has the state at `version`."""
        self.resource_version = version
        self._forget_unfound()
        self.synced.set()
        self._note_served(True)

    def remove_all(self) -> None:
        """Remove everything: the API server no longer serves the resource."""
        self.begin_listing()
        self._forget_unfound()
        self._note_served(False)

    def put(self, object: JsonObject) -> None:
        """Store the current state of an object as JSON, and notify."""
        key, metadata = self.key_of(object), object["metadata"]
        if self._unfound:
            self._unfound.discard(key)
        if (old := self._entries.get(key)) is not None and old.uid != metadata["uid"]:
            self.remove(key)  # it was deleted and recreated, unnoticed
            old = None
        is_known = old is not None and old.resource_version == int(metadata["resourceVersion"])
        if is_known and self._unfound is None:
            return
        kept = self._reduce(key, object)
        if kept is None and key in self._omitted:
            self._notify(key, self._drop(key), entry_of(object))
            return
        if kept is None:
            self.remove(key)
            return
        new = entry_of(kept)
        # A list may read one version by a newer schema, and a change may lie outside what is kept.
        is_same = (
            old is not None
            and (is_known or kept is not object)
            and _content(old.object) == _content(kept)
        )
        self._entries[key] = new
        for index in self._indexes.values():
            index.put(key, kept)
        if not is_same:
            self._notify(key, old, new)
        elif not is_known:
            self._touch(key)

    def remove(self, key: str) -> None:
        """Remove an object, and notify."""
        self._notify(key, self._forget(key), None)

    def key_of(self, object: JsonObject) -> str:
        """Return the key of an object of this resource."""
        metadata = object["metadata"]
        return self.resource.key(metadata.get("namespace"), metadata["name"])

    def _reduce(self, key: str, object: JsonObject) -> JsonObject | None:
        """Return what is kept of an object."""
        kept = self._keep(object)
        if kept is object or not self._on_request(object):
            self._release(key)
            return kept
        if key in self._requested:
            self._omitted.discard(key)
            return object
        self._release(key)
        size = entry_of(object).size
        if self._budget.take(size, f"{self.resource.plural} {key}"):
            self._unrequested[key] = size
            return object
        self._omitted.add(key)
        return kept

    def _release(self, key: str) -> None:
        """Forget whether an object was requested, and what it takes of the budget."""
        self._requested.discard(key)
        self._omitted.discard(key)
        self._budget.give_back(self._unrequested.pop(key, 0))

    def _forget_unfound(self) -> None:
        removed = {key: self._forget(key) for key in self._unfound or ()}
        for key, old in removed.items():
            self._notify(key, old, None)
        self._unfound = None

    def _forget(self, key: str) -> Entry | None:
        self._release(key)
        return self._drop(key)

    def _drop(self, key: str) -> Entry | None:
        old = self._entries.pop(key, None)
        for index in self._indexes.values() if old else ():
            index.remove(key)
        return old

    def _note_served(self, is_served: bool) -> None:
        flips = self.known.is_set() and self.absent == is_served
        self.absent = not is_served
        self.known.set()
        for notify in self.on_served if flips else ():
            notify()

    def _notify(self, key: str, old: Entry | None, new: Entry | None) -> None:
        if old is not None or new is not None:
            change = Change(key, old, new, self._unfound is not None)
            for notify in self.subscribers:
                notify(change)
        self._touch(key)

    def _touch(self, key: str) -> None:
        for touch in self.on_touched:
            touch(key)


def _content(object: JsonObject) -> JsonObject:
    """Return an object without its version, and its type, which the items of a list may lack."""
    about = {key: value for key, value in object["metadata"].items() if key != "resourceVersion"}
    rest = {key: value for key, value in object.items() if key not in ("apiVersion", "kind")}
    return {**rest, "metadata": about}


def entry_of(object: JsonObject) -> Entry:
    """Return the entry of an object without `managedFields`, which are large and never read."""
    metadata = object["metadata"]
    metadata.pop("managedFields", None)
    annotations = metadata.get("annotations")
    return Entry(
        # Copied, since the encoder's buffer is up to twice as long.
        bytes(memoryview(orjson.dumps(object))),
        metadata["uid"],
        int(metadata["resourceVersion"]),
        metadata.get("generation", 0),
        "deletionTimestamp" in metadata,
        controller_of(metadata),
        metadata.get("labels") or {},
        hash(frozenset(annotations.items())) if annotations else 0,
    )


def controller_of(metadata: JsonObject) -> OwnerReference | None:
    """Return the owner that controls the object with this metadata."""
    for reference in metadata.get("ownerReferences") or ():
        if reference.get("controller"):
            version, kind = sys.intern(reference["apiVersion"]), sys.intern(reference["kind"])
            return OwnerReference(version, kind, reference["name"], reference["uid"])
    return None
