"""The ownership check before each write: only a child of the owner is ever written."""

from controller.runtime.observed import Owner, is_controlled_by
from controller.runtime.types import RetryableError, TerminalError
from kube.resource import JsonObject, Resource
from kube.store import controller_of


class NameTakenError(TerminalError):
    """An object with the needed name exists and has another owner or none, so it is not written."""


class StillThereError(RetryableError):
    """A child is still terminating, or an earlier owner's child is not garbage-collected yet."""


def check_ownership(owner: Owner, resource: Resource, current: JsonObject, *, adopts: bool) -> None:
    """Raise unless `current` is a child of `owner` or adopted, and is not being deleted."""
    metadata = current["metadata"]
    what, other = f"{resource.kind} {metadata['name']}", controller_of(metadata)
    if adopts or is_controlled_by(current, owner.object):
        if "deletionTimestamp" in metadata:
            finalizers = ", ".join(metadata.get("finalizers") or ())
            held = f", held by its finalizers ({finalizers})" if finalizers else ""
            raise StillThereError(f"{what} is still terminating{held}; it will be recreated")
        return
    if other is None:
        belongs = f"was not created by this {owner.resource.kind}"
        raise NameTakenError(f"{what} exists and {belongs}; rename one of them")
    same = (owner.resource.kind, owner.resource.group, owner.request.name)
    if (other.kind, other.group, other.name) == same:
        raise StillThereError(
            f"{what} of a deleted {other.kind} is still terminating; it will be recreated"
        )
    belongs = f"belongs to {other.kind} {other.name}"
    raise NameTakenError(f"{what} exists and {belongs}; rename one of them")
