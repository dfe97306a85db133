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
    """A child of an object that was deleted and made anew: the garbage collector is about to remove it."""


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
