"""The last known state of every object of one resource, as JSON bytes that are decoded on each read."""

import asyncio
import sys
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import orjson

from kube.resource import Resource

Object = dict[str, Any]
IndexFunction = Callable[[Object], Iterable[str]]


class Owner(NamedTuple):
    """The owner reference with `controller: true`."""

    api_version: str
    kind: str
    name: str
    uid: str


class Entry(NamedTuple):
    """One object, and what predicates and handlers ask of it without decoding it."""

    raw: bytes
    uid: str
    resource_version: int
    generation: int
    deleting: bool
    owner: Owner | None
    labels: dict[str, str]
    annotations_hash: int

    @property
    def object(self) -> Object:
        """The object, decoded on each read: a private copy."""
        decoded: Object = orjson.loads(self.raw)
        return decoded


class Store:
    """Objects by key (`namespace/name`, or `name`), with indexes; one Watch writes it, all others read."""

    def __init__(self, resource: Resource) -> None:
        self.resource = resource
        self.synced = asyncio.Event()
        """Set once everything that existed at the start is here."""
        self.known = asyncio.Event()
        """Set once it is known what exists: all objects are here, or the API server does not serve the resource."""
        self.absent = False
        """Whether discovery says that the API server does not serve the resource."""
        self.resource_version = 0
        """Everything up to this version is here: that of the last event, bookmark or list. It only orders."""
        self._entries: dict[str, Entry] = {}
        self._indexes: dict[str, _Index] = {}
        self._functions: dict[IndexFunction, _Index] = {}  # indexes that go by the same function are one

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: object) -> bool:
        return key in self._entries

    def keys(self) -> list[str]:
        """Return the keys of all objects, as they are now."""
        return list(self._entries)

    def entry(self, key: str) -> Entry | None:
        """Return what is known of one object, without decoding it."""
        return self._entries.get(key)

    def get(self, key: str) -> Object | None:
        """Return a private copy of one object, or None."""
        entry = self._entries.get(key)
        return entry.object if entry else None

    def index(self, name: str, value: str) -> list[str]:
        """Return the keys of the objects for which the index function gave `value`."""
        return list(self._indexes[name].found.get(value, ()))

    def add_index(self, name: str, function: IndexFunction) -> None:
        """Keep an index from now on; `function` gets an object and returns the values it is found under."""
        if name in self._indexes:
            raise ValueError(f"{self.resource.plural} already have an index {name}")
        index = self._indexes[name] = self._functions.setdefault(function, _Index(function))
        for key, entry in self._entries.items():
            index.put(key, entry.object)

    def put(self, object: Object, key: str = "") -> Entry:
        """Store an object as it now is, under its key, and return its entry; the object itself is not kept."""
        key = key or self.key_of(object)
        new = self._entries[key] = entry_of(object)
        for index in self._functions.values():
            index.put(key, object)
        return new

    def remove(self, key: str) -> Entry | None:
        """Forget an object; return what was known of it."""
        old = self._entries.pop(key, None)
        for index in self._functions.values() if old else ():
            index.remove(key)
        return old

    def key_of(self, object: Object) -> str:
        """Return the key of an object of this resource."""
        metadata = object["metadata"]
        return self.resource.key(metadata.get("namespace"), metadata["name"])


class _Index:
    """The keys of objects by the values that a function finds in them."""

    def __init__(self, function: IndexFunction) -> None:
        self.found: dict[str, set[str]] = {}
        self._function = function
        self._values: dict[str, tuple[str, ...]] = {}  # of the keys that are found at all

    def put(self, key: str, object: Object) -> None:
        """Let an object be found under the values that it has now."""
        values, before = tuple(self._function(object)), self._values.get(key, ())
        if values == before:
            return
        if before:
            self.remove(key)
        self._values[key] = values
        for value in values:
            self.found.setdefault(value, set()).add(key)

    def remove(self, key: str) -> None:
        """Let an object be found no more."""
        for value in self._values.pop(key, ()):
            if (keys := self.found.get(value)) is not None:
                keys.discard(key)
                if not keys:
                    del self.found[value]


def entry_of(object: Object) -> Entry:
    """Return the entry of an object, without its `managedFields`: they are long, and nothing reads them."""
    metadata = object["metadata"]
    metadata.pop("managedFields", None)
    annotations = metadata.get("annotations")
    return Entry(
        exactly(orjson.dumps(object)),
        metadata["uid"],
        int(metadata["resourceVersion"]),
        metadata.get("generation", 0),
        "deletionTimestamp" in metadata,
        controller_of(metadata),
        metadata.get("labels") or {},
        hash(frozenset(annotations.items())) if annotations else 0,
    )


def exactly(encoded: bytes) -> bytes:
    """Return bytes that take no more memory than they are long: the encoder's buffer is up to twice that."""
    return bytes(memoryview(encoded))


def controller_of(metadata: Object) -> Owner | None:
    """Return the owner that controls the object with this metadata."""
    for reference in metadata.get("ownerReferences") or ():
        if reference.get("controller"):
            version, kind = sys.intern(reference["apiVersion"]), sys.intern(reference["kind"])
            return Owner(version, kind, reference["name"], reference["uid"])
    return None
