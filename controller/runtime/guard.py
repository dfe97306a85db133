"""Whose an object is: what is not our child is never written."""

from controller.runtime.parent import Parent, is_controlled_by
from controller.runtime.plan import Object
from controller.runtime.result import Request, RetryableError, TerminalError
from kube.resource import Resource
from kube.store import controller_of


class NameTakenError(TerminalError):
    """An object of the name we need exists and is not ours: it is never touched."""

    def __init__(self, message: str, resource: Resource, key: str) -> None:
        super().__init__(message)
        self.place = (resource, key)


class StillThereError(RetryableError):
    """A child that is about to go, since it was deleted, or its owner was and is there anew; then it is made again."""


def refuse_foreign(resource: Resource, key: str, current: Object, parent: Parent) -> None:
    """Raise unless `current` is our child."""
    if is_controlled_by(current, parent.object):
        return
    owner = controller_of(current["metadata"])
    name = Request.of(key).name
    ours = (parent.resource.kind, parent.resource.group, parent.request.name)
    if owner is not None and (owner.kind, owner.api_version.rpartition("/")[0], owner.name) == ours:
        raise StillThereError(f"{resource.kind} {name} of a deleted {owner.kind} is still there")
    belongs = f"belongs to {owner.kind} {owner.name}" if owner else f"was not made by this {parent.resource.kind}"
    raise NameTakenError(f"{resource.kind} {name} exists and {belongs}; rename one of them", resource, key)


def refuse_deleted(resource: Resource, current: Object) -> None:
    """Raise if our child `current` was deleted, and is there only as long as its finalizers are."""
    metadata = current["metadata"]
    if "deletionTimestamp" in metadata:
        what, held = f"{resource.kind} {metadata['name']}", ", ".join(metadata.get("finalizers") or ())
        held_by = f", and is held by its finalizers ({held})" if held else ""
        raise StillThereError(f"{what} was deleted{held_by}; it is made anew once it is gone")
