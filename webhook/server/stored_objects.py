"""Objects that policies look up in a watch: decoded where a policy reads them, and only then."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import orjson

from kube.resource import JsonObject
from kube.store import Entry
from webhook.engine.look_ups import LookUp

MAX_SUMMARIES = 64 * 1024


class StoredObjects:
    """Looked-up objects of stores, as they were then.

    `size` is their JSON in bytes: where that is much, the review is judged beside the event loop.
    """

    def __init__(self, look_up: LookUp, entries: Sequence[Entry]) -> None:
        self._look_up, self._entries = look_up, entries
        self.size = sum(len(entry.raw) for entry in entries)

    def __iter__(self) -> Iterator[JsonObject]:
        shape = self._look_up.shape
        for entry in self._entries:
            yield entry.object if shape is None else _summary(shape, entry.raw)


@lru_cache(MAX_SUMMARIES)
def _summary(shape: Callable[[JsonObject, str], JsonObject], raw: bytes) -> JsonObject:
    """Return what counts of an object, which is read again and again and never changed."""
    return shape(orjson.loads(raw), "")


def size_of(known: Mapping[str, Any]) -> int:
    """Return the bytes of all stored objects among what was looked up."""
    return sum(each.size for each in known.values() if isinstance(each, StoredObjects))
