"""What exists around an object as plain values: for tests, and for plans that are made without a cluster."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from controller.runtime.plan import Object
from kube.resource import Resource


@dataclass(frozen=True, slots=True)
class Given:
    """A `Seen` of plain values, for tests and for plans made without a cluster; empty, nothing exists yet."""

    children: Sequence[Object] = ()
    found: Mapping[tuple[Resource, str, str], Sequence[Object]] = field(default_factory=dict)
    served: frozenset[Resource] = frozenset()
    settings: Mapping[str, Any] = field(default_factory=dict)

    def child(self, resource: Resource, name: str) -> Object | None:
        """Return the child of that resource and name."""
        for child in self.children:
            if (child["apiVersion"], child["kind"], child["metadata"]["name"]) == (
                resource.api_version,
                resource.kind,
                name,
            ):
                return child
        return None

    def find(self, resource: Resource, index: str, value: str) -> Sequence[Object]:
        """Return what was given for that look-up."""
        return self.found.get((resource, index, value), ())

    def serves(self, resource: Resource) -> bool:
        """Tell whether the resource was given as served."""
        return resource in self.served
