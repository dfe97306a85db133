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
    container: str | None = (
        None  # path of the field that describes one container: image, resources, securityContext
    )
    storage: bool = True  # whether this is the version that is stored and planned

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


AGE = Column("Age", ".metadata.creationTimestamp", "date")
MESSAGE = Column(
    "Message",
    '.status.conditions[?(@.type=="Ready")].message',
    description="Message of the Ready condition.",
    wide=True,
)
