"""What a cache keeps of each object, so that its memory does not grow with other people's objects.

Children of the reconciled kinds are kept whole. But anybody can name a parent as an object's owner:
until a plan requests such an object by its name, it is kept within `MAX_UNREQUESTED` only. Of an
object that a planner finds by an index, the fields that it reads are kept; of any other object,
nothing.
"""

from collections.abc import Mapping

from controller.runtime.kind import KeptFields
from kube.index import IndexFunction, values_of
from kube.resource import GroupKind, JsonObject, Resource
from kube.store import controller_of

# Bytes in all caches of a process, and more of them for each reconciled object. After a start, no
# plan has requested anything yet: ordinary children have room, and are not read one by one.
MAX_UNREQUESTED = 8 << 20
MAX_UNREQUESTED_EACH = 16 << 10
IDENTITY = ("name", "namespace", "uid", "resourceVersion", "generation", "deletionTimestamp")


class CacheFilter:
    """Which objects of one resource a cache keeps, and how much of them; at first none."""

    def __init__(self) -> None:
        self._is_complete = False
        self.owners: set[GroupKind] = set()
        """The kinds whose children are kept."""
        self._reads: list[tuple[Mapping[str, IndexFunction], KeptFields]] = []

    def keep_all(self) -> None:
        """Keep every object whole."""
        self._is_complete = True

    def keep_children_of(self, owner: Resource) -> None:
        """Keep the objects that an object of `owner` controls."""
        self.owners.add((owner.group, owner.kind))

    def keep_found_by(self, indexes: Mapping[str, IndexFunction], fields: KeptFields) -> None:
        """Keep the `fields` of the objects that one of the indexes has a value for."""
        self._reads.append((indexes, fields))

    def keep(self, object: JsonObject) -> JsonObject | None:
        """Return what is kept of an object; None: nothing."""
        if self._is_complete:
            return object
        kept: JsonObject | None = None
        for fields in self._readers_of(object):
            if fields is None:
                return object
            kept = merge(kept or {}, fields(object))
        return None if kept is None else reduce(object, kept)

    def _readers_of(self, object: JsonObject) -> set[KeptFields]:
        return {
            fields
            for indexes, fields in self._reads
            if any(values_of(index, object) for index in indexes.values())
        }

    def is_child(self, object: JsonObject) -> bool:
        """Return whether an object names one of the reconciled kinds as its controller's."""
        owner = controller_of(object["metadata"]) if self.owners else None
        return owner is not None and (owner.group, owner.kind) in self.owners


def merge(some: JsonObject, others: JsonObject) -> JsonObject:
    """Return the fields of both; a list of which both keep something is that of the second."""
    merged = {**some, **others}
    for key in some.keys() & others.keys():
        if isinstance(some[key], dict) and isinstance(others[key], dict):
            merged[key] = merge(some[key], others[key])
    return merged


def reduce(object: JsonObject, fields: JsonObject) -> JsonObject:
    """Return an object with these fields, and those that identify it and its version."""
    identity = {key: object["metadata"][key] for key in IDENTITY if key in object["metadata"]}
    return {
        **{key: object[key] for key in ("apiVersion", "kind") if key in object},
        **fields,
        "metadata": fields.get("metadata", {}) | identity,
    }
