"""What a kind's planner is given and what it answers: values only, no client and no clock."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, ClassVar, Generic, Literal, Protocol, Self, TypeVar

from kube.resource import Resource

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Random:
    """A secret value of `length` characters that the runtime makes up: a plan never holds it."""

    length: int = 32


@dataclass(frozen=True, slots=True)
class Reference:
    """One object and no other: a new one of the same name has another uid."""

    resource: Resource
    name: str
    uid: str
    namespace: str | None = None


@dataclass(frozen=True, slots=True)
class Apply:
    """An object that we own and keep as it is written here (server-side apply).

    `origin` says which field of the parent each field comes from, so that a denial can name the parent's.
    """

    object: Object
    origin: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Once:
    """An object that we own, created when it is absent and never changed after; `generate` fills paths at random.

    One that has labels that it is `known_by` outlives its parent: it has no owner, and the next parent that wants it
    takes one with these labels as it is.
    """

    object: Object
    generate: Mapping[str, Random] = field(default_factory=dict)
    known_by: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Patch:
    """Fields of somebody else's object: only these, under a field manager of their own."""

    reference: Reference
    fields: Object


@dataclass(frozen=True, slots=True)
class Delete:
    """The only way to remove an object: leaving it out of a plan removes nothing."""

    reference: Reference


Write = Apply | Once | Patch | Delete


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that is wrong; as a plan's own problem, a permanent error: only a change of the object can mend it."""

    message: str
    reason: str = "Incomplete"


@dataclass(frozen=True, slots=True)
class Step:
    """One part of what should exist; always in the plan, whatever exists already.

    The objects of a step are created once all its `needs` hold; those that exist are kept right regardless. A step may
    have a `condition` of its own in the status, which says its `note`: what is waited for, or what is wrong with what
    was made.
    """

    name: str
    writes: Sequence[Write]
    needs: Sequence[str] = ()
    holds: bool = True
    doing: str = ""
    condition: str = ""
    note: str | Problem = ""

    @property
    def failed_to(self) -> str:
        """What a condition's message begins with when the step fails."""
        return self.doing or f"failed to create {self.name}"

    @property
    def problem(self) -> Problem | None:
        """What is wrong with what was made, as a condition says it."""
        if isinstance(self.note, str):
            return None
        return Problem(f"{self.failed_to}: {self.note.message}", self.note.reason)


@dataclass(frozen=True, slots=True)
class Event:
    """Something worth telling the people who look after the object."""

    reason: str
    note: str
    type: Literal["Normal", "Warning"] = "Normal"


class Status(Protocol):
    """A kind's status; the runtime adds `observedGeneration` and the condition `Ready`."""

    def to_api(self) -> Object:
        """Return the status as the API server takes it."""


@dataclass(frozen=True, slots=True)
class Plan:
    """All that should exist for one object, and what its status should say; `failing`: its phase while a step fails."""

    steps: Sequence[Step]
    status: Status
    problem: Problem | None = None
    requeue_after: timedelta | None = None
    events: Sequence[Event] = ()
    finalized: bool = True
    failing: str = ""

    def __post_init__(self) -> None:
        """Refuse a step that needs one which does not stand before it."""
        before: set[str] = set()
        for step in self.steps:
            if unknown := set(step.needs) - before:
                raise ValueError(f"step {step.name} needs {', '.join(sorted(unknown))}, which does not stand before it")
            before.add(step.name)


class Seen(Protocol):
    """What exists around an object: its children and what its kind declared that it reads."""

    @property
    def settings(self) -> Mapping[str, Any]:
        """The settings of the process that planners may depend on."""

    def child(self, resource: Resource, name: str) -> Object | None:
        """Return a child of the object, None if there is none or the name is somebody else's."""

    def find(self, resource: Resource, index: str, value: str) -> Sequence[Object]:
        """Return the objects in the same namespace whose index `index` has `value`."""

    def serves(self, resource: Resource) -> bool:
        """Tell whether the API server has this resource."""


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


class Definition(Protocol):
    """Where a kind lives in the API."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool


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


@dataclass(frozen=True, slots=True)
class Counts:
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

    @property
    def name(self) -> str:
        """The kind in lower case: the prefix of its metrics and log fields."""
        return self.resource.kind.lower()

    def owned(self, object: Object) -> Resource:
        """Return the resource of a child; only what `owns` declares can be one."""
        for resource in self.owns:
            if (resource.api_version, resource.kind) == (object["apiVersion"], object["kind"]):
                return resource
        raise ValueError(f"{self.resource.kind} does not declare that it owns {object['apiVersion']} {object['kind']}")
