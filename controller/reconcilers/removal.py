"""Deletion of a database with the policy Delete: its instances stop, then its claims are deleted.

The StatefulSet controller creates claims, and can create one after the StatefulSet was deleted. So
the StatefulSet is first scaled to 0: once its controller has observed this, it creates no more
claims.
"""

from collections.abc import Iterable
from typing import NamedTuple

from controller.reconcilers.resources import CLAIM, STATEFUL_SET
from controller.runtime.plan import ApplyFields, Delete, Reference, Write
from kube.resource import JsonObject, Resource


class Removal(NamedTuple):
    """The remaining writes of a database's deletion, and whether the deletion is complete."""

    writes: list[Write]
    finalized: bool


def removal(
    policy: str,
    stateful_set: JsonObject | None,
    claims: Iterable[JsonObject],
    *,
    is_deleting: bool,
    others: Iterable[tuple[Resource, JsonObject]] = (),
) -> Removal:
    """Return the writes that stop the instances, and then delete the claims and the `others`."""
    if policy == "Retain" or not is_deleting:
        return Removal([], finalized=policy == "Retain")
    stop: list[Write] = []
    if stateful_set is not None:
        stop.append(ApplyFields(_reference(STATEFUL_SET, stateful_set), {"spec": {"replicas": 0}}))
        if not _is_stopped(stateful_set):
            return Removal(stop, finalized=False)
    left = [
        (resource, object)
        for resource, object in (*((CLAIM, claim) for claim in claims), *others)
        if "deletionTimestamp" not in object["metadata"]
    ]
    deletes = [Delete(_reference(*each)) for each in left]
    return Removal([*stop, *deletes], finalized=not left)


def _is_stopped(stateful_set: JsonObject) -> bool:
    """Return whether no instance is left, and the StatefulSet controller will create none."""
    status = stateful_set.get("status", {})
    is_seen = status.get("observedGeneration") == stateful_set["metadata"].get("generation")
    is_empty = stateful_set["spec"].get("replicas") == status.get("replicas", 0) == 0
    return bool(is_seen and is_empty)


def _reference(resource: Resource, object: JsonObject) -> Reference:
    metadata = object["metadata"]
    return Reference(resource, metadata["name"], metadata["uid"], metadata.get("namespace"))
