"""The ownership check before each write: only a child of the owner is ever written.

Each child has a mark, an annotation with its parent's kind and name. A child that lost its owner
reference (restored from a backup, or orphaned) is adopted by the parent that the mark names.
Children of releases that had no mark get it with their next write; until then, such a child is
adopted by the parent whose plan it fulfils.
"""

from controller.runtime.applied import is_applied
from controller.runtime.diff import difference
from controller.runtime.observed import Owner, is_controlled_by
from controller.runtime.types import RetryableError, TerminalError
from kube.resource import JsonObject, Resource
from kube.store import controller_of

PARENT = "gatewright.io/parent"


class NameTakenError(TerminalError):
    """An object with the needed name exists and has another owner or none, so it is not written."""


class StillThereError(RetryableError):
    """A child is still terminating, or an earlier owner's child is not garbage-collected yet."""


def mark_of(owner: Owner) -> str:
    """Return the value of the mark of an owner's children."""
    return f"{owner.resource.kind}.{owner.resource.group}/{owner.request.name}"


def is_adoptable(owner: Owner, current: JsonObject) -> bool:
    """Return whether an object has no controller, and the mark of this owner's children."""
    metadata = current["metadata"]
    is_marked = (metadata.get("annotations") or {}).get(PARENT) == mark_of(owner)
    return is_marked and controller_of(metadata) is None


def is_unmarked(current: JsonObject) -> bool:
    """Return whether an object has no mark."""
    return PARENT not in (current["metadata"].get("annotations") or {})


def without_marks(child: JsonObject) -> JsonObject:
    """Return a child as a release without marks applied it."""
    annotations = {
        key: value for key, value in child["metadata"]["annotations"].items() if key != PARENT
    }
    return {**child, "metadata": {**child["metadata"], "annotations": annotations}}


def is_former_child(current: JsonObject, desired: JsonObject) -> bool:
    """Return whether an object without controller and mark was applied, and is as desired."""
    metadata = current["metadata"]
    if controller_of(metadata) is not None or not (is_unmarked(current) and is_applied(current)):
        return False
    labels = {"labels": desired["metadata"].get("labels") or {}}
    return difference(current, {**desired, "metadata": labels}) is None


def check_ownership(owner: Owner, resource: Resource, current: JsonObject, *, adopts: bool) -> None:
    """Raise unless `current` is a child of `owner` or adopted, and is not being deleted."""
    metadata = current["metadata"]
    what, other = f"{resource.kind} {metadata['name']}", controller_of(metadata)
    if adopts or is_controlled_by(current, owner.object) or is_adoptable(owner, current):
        if "deletionTimestamp" in metadata:
            finalizers = ", ".join(metadata.get("finalizers") or ())
            held = f", held by its finalizers ({finalizers})" if finalizers else ""
            raise StillThereError(f"{what} is still terminating{held}; it will be recreated")
        return
    if other is None:
        raise NameTakenError(
            f"{what} exists and was not created by this {owner.resource.kind}; rename one of them, "
            f"or hand it over: {hand_over(owner, resource, metadata)}"
        )
    same = (owner.resource.kind, owner.resource.group, owner.request.name)
    if (other.kind, other.group, other.name) == same:
        raise StillThereError(
            f"{what} of a deleted {other.kind} is still terminating; it will be recreated"
        )
    belongs = f"belongs to {other.kind} {other.name}"
    raise NameTakenError(f"{what} exists and {belongs}; rename one of them")


def hand_over(owner: Owner, resource: Resource, metadata: JsonObject) -> str:
    """Return the command with which a person makes an object a child of `owner`."""
    where = f" -n {metadata['namespace']}" if metadata.get("namespace") else ""
    group = f".{resource.group}" if resource.group else ""
    return (
        f"kubectl annotate{where} {resource.plural}{group} {metadata['name']} "
        f"{PARENT}={mark_of(owner)}"
    )
