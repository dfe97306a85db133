"""The object that a plan is for, as it was read at the start of its reconcile."""

from dataclasses import dataclass

from controller.runtime.plan import Object
from controller.runtime.result import Request
from kube.resource import Resource


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
        return {
            "apiVersion": self.resource.api_version,
            "kind": self.resource.kind,
            "name": self.request.name,
            "uid": self.uid,
            "controller": True,
            "blockOwnerDeletion": True,
        }
