"""What a cache keeps of each object, so that its memory does not grow with other people's objects.

Children of the reconciled kinds are kept whole. Of an object that a planner finds by an index, the
fields that it reads are kept; of any other object, nothing.
"""

from collections.abc import Mapping

from controller.runtime.kind import KeptFields
from kube.index import IndexFunction, values_of
from kube.resource import GroupKind, JsonObject, Resource
from kube.store import controller_of

IDENTITY = ("name", "namespace", "uid", "resourceVersion", "generation", "deletionTimestamp")


class CacheFilter:
    """Which objects of one resource a cache keeps, and how much of them; at first none."""

    def __init__(self) -> None:
        self._is_complete = False
        self._owners: set[GroupKind] = set()
        self._reads: list[tuple[Mapping[str, IndexFunction], KeptFields]] = []

    def keep_all(self) -> None:
        """Keep every object whole."""
        self._is_complete = True

    def keep_children_of(self, owner: Resource) -> None:
        """Keep the objects that an object of `owner` controls."""
        self._owners.add((owner.group, owner.kind))

    def keep_found_by(self, indexes: Mapping[str, IndexFunction], fields: KeptFields) -> None:
        """Keep the `fields` of the objects that one of the indexes has a value for."""
        self._reads.append((indexes, fields))

    def keep(self, object: JsonObject) -> JsonObject | None:
        """Return what is kept of an object; None: nothing."""
        if self._is_complete:
            return object
        owner = controller_of(object["metadata"]) if self._owners else None
        if owner is not None and (owner.group, owner.kind) in self._owners:
            return object
        readers = {
            fields
            for indexes, fields in self._reads
            if any(values_of(index, object) for index in indexes.values())
        }
        if not readers:
            return None
        fields = readers.pop()
        return object if readers or fields is None else reduce(object, fields(object))


def reduce(object: JsonObject, fields: JsonObject) -> JsonObject:
    """Return an object with these fields, and those that identify it and its version."""
    identity = {key: object["metadata"][key] for key in IDENTITY if key in object["metadata"]}
    return {
        **{key: object[key] for key in ("apiVersion", "kind") if key in object},
        **fields,
        "metadata": fields.get("metadata", {}) | identity,
    }
