"""Looked-up objects from a watch's store, decoded only when a policy reads them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import orjson

from kube.resource import JsonObject
from kube.store import Entry
from webhook.engine.look_ups import LookUp

MAX_SUMMARIES = 64 * 1024


class StoredObjects:
    """A snapshot of looked-up objects from stores.

    `size` is their JSON in bytes: if it is large, the review is judged in the worker thread.
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
    """Return the used part of an object; cached, since it is immutable and read often."""
    return shape(orjson.loads(raw), "")


def size_of(data: Mapping[str, Any]) -> int:
    """Return the total size of stored objects among the look-ups."""
    return sum(each.size for each in data.values() if isinstance(each, StoredObjects))
