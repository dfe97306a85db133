"""The object that a plan is for, as it was read at the start of its reconcile."""

from dataclasses import dataclass

from controller.runtime.plan import Object
from controller.runtime.result import Request
from kube.resource import Resource
from kube.store import controller_of


@dataclass(frozen=True, slots=True)
class Parent:
    """A custom resource and what the runtime asks of it."""

    request: Request
    resource: Resource
    object: Object

    @property
    def uid(self) -> str:
        """Its uid."""
        return str(self.object["metadata"]["uid"])

    @property
    def generation(self) -> int:
        """Which of its specs this is."""
        return int(self.object["metadata"].get("generation", 0))

    @property
    def status(self) -> Object:
        """Its status as it is stored."""
        return self.object.get("status") or {}

    @property
    def finalizers(self) -> list[str]:
        """What must happen before it is gone."""
        return self.object["metadata"].get("finalizers") or []

    @property
    def is_deleting(self) -> bool:
        """Whether its deletion was asked for: it gets no children then."""
        return "deletionTimestamp" in self.object["metadata"]

    @property
    def is_settled(self) -> bool:
        """Whether the status says that the present spec was seen to."""
        return bool(self.status.get("observedGeneration") == self.generation)

    @property
    def reference(self) -> Object:
        """The owner reference that makes an object its child."""
        return controller_reference(self.resource, self.object)


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
    reference = controller_of(object["metadata"])
    return reference is not None and reference.uid == owner["metadata"]["uid"]
