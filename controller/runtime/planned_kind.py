"""A planned kind: its type, its planner, and all that the planner may look at and write."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, Self, TypeVar

from controller.runtime.plan import Object, Plan, Seen
from kube.resource import Resource


class Definition(Protocol):
    """Where a kind lives in the API, and the columns in which it is shown."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool
    columns: Sequence[Any]


class CustomObject(Protocol):
    """A custom resource's type: reads the stored object, and knows where its kind lives."""

    definition: ClassVar[Any]

    @classmethod
    def model_validate(cls, object: Any, /) -> Self:
        """Read a stored object."""


T = TypeVar("T", bound=CustomObject)
By = Callable[[Object], Iterable[str]]


@dataclass(frozen=True, slots=True)
class Reads:
    """What a planner looks at beside the children, and by what it finds them.

    A change wakes those objects of the kind, in its namespace, that share a value with it in an index that both have;
    all of them where no index is common. What is in no namespace is everybody's. With a selector by `labels` nothing
    else of the resource is kept in memory; children of that resource must have these labels.
    """

    resource: Resource
    indexes: Mapping[str, By] = field(default_factory=dict)
    labels: str | None = None


class Counts(NamedTuple):
    """A counter of a name of its own: how often a field of the status got another value."""

    name: str
    field: str
    about: str


class PlannedKind(Generic[T]):
    """A kind of object, and the pure function that says what should exist for each."""

    def __init__(
        self,
        type: type[T],
        *,
        plan: Callable[[T, Seen, datetime], Plan],
        owns: Sequence[Resource] = (),
        once: Sequence[Resource] = (),
        reads: Sequence[Resource | Reads] = (),
        patches: Sequence[Resource] = (),
        deletes: Sequence[Resource] = (),
        optional: Sequence[Resource] = (),
        indexes: Mapping[str, By] | None = None,
        finalizer: str | None = None,
        counts: Counts | None = None,
    ) -> None:
        """Take the kind's type, its planner, and all that the planner may look at and write.

        It applies to what it `owns`, or only ever creates it `once`; of that and of what it `reads` it may patch and
        delete what is named there, and the API server may be without what is `optional`.
        """
        definition = type.definition
        self.type = type
        self.resource = Resource(
            definition.group, definition.version, definition.plural, definition.kind, definition.namespaced
        )
        self.plan = plan
        self.owns = (*owns, *once)
        self._owned = {(each.api_version, each.kind): each for each in self.owns}
        self.once = tuple(once)
        looked_at = [each if isinstance(each, Reads) else Reads(each) for each in reads]
        self.reads = tuple(each.resource for each in looked_at)
        self.read_indexes = {each.resource: each.indexes for each in looked_at}
        self.read_labels = {each.resource: each.labels for each in looked_at}
        self.patches = tuple(patches)
        self.deletes = tuple(deletes)
        self.optional = tuple(optional)
        if unknown := {*self.patches, *self.deletes, *self.optional} - {*self.owns, *self.reads}:
            names = ", ".join(sorted(each.plural for each in unknown))
            raise ValueError(f"{self.resource.kind} neither owns nor reads {names}")
        self.indexes = dict(indexes or {})
        self.finalizer = finalizer
        self.counts = counts
        self.shows_phase = any(column.path == ".status.phase" for column in definition.columns)
        """Whether people look for a phase, also of what could not be planned yet."""

    @property
    def name(self) -> str:
        """The kind in lower case: the prefix of its metrics and log fields."""
        return self.resource.kind.lower()

    def owned(self, object: Object) -> Resource:
        """Return the resource of a child; only what `owns` declares can be one."""
        if resource := self._owned.get((object["apiVersion"], object["kind"])):
            return resource
        raise ValueError(f"{self.resource.kind} does not declare that it owns {object['apiVersion']} {object['kind']}")
