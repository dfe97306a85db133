"""The objects with their versions, and recent events: etcd and the watch cache in one."""

from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from gatewright.testing.fake_apiserver.refusals import StatusError
from kube.resource import JsonObject

MAX_EVENTS = 10_000

Bucket = tuple[str, str]
ObjectKey = tuple[str, str]  # namespace ("" for the cluster's) and name


@dataclass(frozen=True, slots=True)
class StorageEvent:
    """One change: from `old` to `new`; None means no object."""

    version: int
    bucket: Bucket
    old: JsonObject | None
    new: JsonObject | None


class Storage:
    """The stored objects, which are never changed, only replaced."""

    def __init__(self) -> None:
        self.version = 100
        self.oldest = self.version
        """Watches and continue tokens of earlier versions are too old."""
        self.listeners: list[Callable[[StorageEvent], None]] = []
        self._buckets: dict[Bucket, dict[ObjectKey, JsonObject]] = defaultdict(dict)
        self._events: deque[StorageEvent] = deque()

    def get(self, bucket: Bucket, key: ObjectKey) -> JsonObject | None:
        """Return an object, or None."""
        return self._buckets[bucket].get(key)

    def all(self, bucket: Bucket, namespace: str = "") -> list[tuple[ObjectKey, JsonObject]]:
        """Return the objects of a bucket, of one namespace if given, in the order of their keys."""
        items = self._buckets[bucket].items()
        return sorted(
            (item for item in items if not namespace or item[0][0] == namespace),
            key=lambda item: item[0],
        )

    def everything(self) -> Iterator[tuple[Bucket, ObjectKey, JsonObject]]:
        """Yield all objects in their present state."""
        for bucket, objects in list(self._buckets.items()):
            for key, object in list(objects.items()):
                yield bucket, key, object

    def commit(self, bucket: Bucket, key: ObjectKey, new: JsonObject | None) -> JsonObject:
        """Store an object under the next version, or delete it (None); return its last state."""
        self.version += 1
        old = self._buckets[bucket].get(key)
        last = new if new is not None else dict(old or {})
        last["metadata"] = {**last["metadata"], "resourceVersion": str(self.version)}
        if new is None:
            del self._buckets[bucket][key]
            event = StorageEvent(self.version, bucket, last, None)
        else:
            self._buckets[bucket][key] = last
            event = StorageEvent(self.version, bucket, old, last)
        self._events.append(event)
        while len(self._events) > MAX_EVENTS:
            self.oldest = self._events.popleft().version
        for listener in list(self.listeners):
            listener(event)
        return last

    def compact(self) -> None:
        """Drop all events."""
        self._events.clear()
        self.oldest = self.version

    def since(self, version: int, bucket: Bucket) -> list[StorageEvent]:
        """Return the events of a bucket after a version.

        Raises StatusError if some were dropped.
        """
        if version < self.oldest:
            raise StatusError(410, f"too old resource version: {version} ({self.oldest})")
        return [
            event for event in self._events if event.version > version and event.bucket == bucket
        ]
