"""The parts of a kind's CustomResourceDefinition other than its schema, as data."""

from typing import NamedTuple

from kube.resource import Resource


class Column(NamedTuple):
    """A column of `kubectl get`; with `wide`, only of `kubectl get -o wide`."""

    name: str
    path: str
    type: str = "string"
    description: str = ""
    wide: bool = False


class Scale(NamedTuple):
    """The field paths of the scale subresource."""

    replicas: str = ".spec.replicas"
    ready: str = ".status.replicas"
    selector: str = ".status.selector"


class Definition(NamedTuple):
    """The names, columns and subresources of one version of a kind."""

    group: str
    version: str
    kind: str
    plural: str
    short_names: tuple[str, ...] = ()
    columns: tuple[Column, ...] = ()
    scale: Scale | None = None
    selectable_fields: tuple[str, ...] = ()
    categories: tuple[str, ...] = ("gatewright", "all")
    namespaced: bool = True
    # Path of the field that describes one container: image, resources, securityContext.
    container: str | None = None
    # Whether this is the version that is stored and planned.
    storage: bool = True

    @property
    def resource(self) -> Resource:
        """The resource of this version."""
        return Resource(self.group, self.version, self.plural, self.kind, self.namespaced)

    @property
    def api_version(self) -> str:
        """Group and version, as in `apiVersion`."""
        return f"{self.group}/{self.version}"

    @property
    def name(self) -> str:
        """Name of the CustomResourceDefinition."""
        return f"{self.plural}.{self.group}"


# Paths of the condition Ready.
READY = '.status.conditions[?(@.type=="Ready")].status'
READY_MESSAGE = '.status.conditions[?(@.type=="Ready")].message'
AGE = Column("Age", ".metadata.creationTimestamp", "date")
MESSAGE = Column("Message", READY_MESSAGE, description="Message of the Ready condition.", wide=True)
