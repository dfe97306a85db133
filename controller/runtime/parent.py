"""The object that a plan is for, as it was read at the start of its reconcile."""

from controller.runtime.conditions import ready_in
from controller.runtime.plan import Object
from controller.runtime.result import Request
from controller.runtime.status import PLAN_FAILED
from kube.resource import Resource


class Parent:
    """A custom resource and what the runtime asks of it."""

    def __init__(self, request: Request, resource: Resource, object: Object) -> None:
        metadata = object["metadata"]
        self.request = request
        self.resource = resource
        self.object = object
        self.uid: str = metadata["uid"]
        self.generation: int = metadata.get("generation", 0)
        """Which of its specs this is."""
        self.status: Object = object.get("status") or {}
        """Its status as it is stored."""
        self.finalizers: list[str] = metadata.get("finalizers") or []
        """What must happen before it is gone."""
        self.is_deleting = "deletionTimestamp" in metadata
        """Whether its deletion was asked for: it gets no children then."""
        self.reference = controller_reference(resource, object)
        """The owner reference that makes an object its child."""

    @property
    def is_settled(self) -> bool:
        """Whether the status says that the present spec was seen to: that there was a plan for it."""
        ready = ready_in(self.status)
        was_planned = ready is None or ready.get("reason") != PLAN_FAILED
        return was_planned and self.status.get("observedGeneration") == self.generation


def controller_reference(resource: Resource, owner: Object) -> Object:
    """Return the owner reference that makes an object a child of `owner`, which is one of `resource`."""
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def is_controlled_by(object: Object, owner: Object) -> bool:
    """Tell whether an object is a child of `owner`."""
    for reference in object["metadata"].get("ownerReferences") or ():
        if reference.get("controller"):
            return bool(reference["uid"] == owner["metadata"]["uid"])
    return False
