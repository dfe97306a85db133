"""The arguments and results of a kind's planner: values only, no client and no clock."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal, NamedTuple, Protocol

from kube.resource import JsonObject, Resource


class Random(NamedTuple):
    """A secret of `length` characters that the runtime generates; a plan never contains it."""

    length: int = 32


class Reference(NamedTuple):
    """A reference to one object; a new object with the same name has another uid."""

    resource: Resource
    name: str
    uid: str
    namespace: str | None = None


@dataclass(frozen=True, slots=True)
class Apply:
    """A child that is kept exactly in the planned state, by server-side apply.

    `origin` maps each field to the parent's field that it comes from, so that a denial can name the
    parent's field. `initial` has values by path, such as `spec.replicas`, that the child is created
    with; later, another writer decides, such as an autoscaler, and each apply repeats its value.
    """

    object: JsonObject
    origin: Mapping[str, str] = field(default_factory=dict)
    initial: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CreateOnly:
    """A child that is created when it is absent and never changed afterwards.

    `generate` fills paths at random.

    With `adopt_labels` it outlives its parent: it has no owner, and the next parent that plans it
    uses an existing object with these labels unchanged. `origin` is as for `Apply`.
    """

    object: JsonObject
    generate: Mapping[str, Random] = field(default_factory=dict)
    adopt_labels: Mapping[str, str] = field(default_factory=dict)
    origin: Mapping[str, str] = field(default_factory=dict)

    def adopts(self, object: JsonObject) -> bool:
        """Return whether an existing object is used unchanged."""
        labels = object["metadata"].get("labels") or {}
        return bool(self.adopt_labels) and self.adopt_labels.items() <= labels.items()


class ApplyFields(NamedTuple):
    """Some fields of an object with another owner, applied by a separate field manager."""

    reference: Reference
    fields: JsonObject


class Delete(NamedTuple):
    """Deletes an object. Leaving an object out of a plan does not delete it."""

    reference: Reference


Write = Apply | CreateOnly | ApplyFields | Delete


class Problem(NamedTuple):
    """A problem.

    As `Plan.problem` it is permanent: only a change of the object can fix it.
    """

    message: str
    reason: str = "Incomplete"


def incomplete(*fields: str) -> Problem:
    """Return the problem of fields that are not set and have no default."""
    return Problem(f"{', '.join(fields)}: must be set")


@dataclass(frozen=True, slots=True)
class Step:
    """A group of children; always in the plan, whatever exists already.

    The objects of a step are created once all steps that it `depends_on` are `ready`; existing
    objects are always repaired. A step may have its own `condition` in the status, whose
    message is its `note`: the progress or the problem of its objects. Without one, the condition
    Ready has the note.
    """

    name: str
    writes: Sequence[Write]
    depends_on: Sequence[str] = ()
    ready: bool = True
    doing: str = ""
    condition: str = ""
    note: str | Problem = ""

    @property
    def failed_to(self) -> str:
        """The beginning of a condition's message when the step fails."""
        return self.doing or f"failed to create {self.name}"

    @property
    def problem(self) -> Problem | None:
        """The problem of the step's objects, for a condition."""
        if isinstance(self.note, str):
            return None
        return Problem(f"{self.failed_to}: {self.note.message}", self.note.reason)


@dataclass(frozen=True, slots=True)
class Event:
    """A Kubernetes event about the object."""

    reason: str
    note: str
    type: Literal["Normal", "Warning"] = "Normal"


class KindStatus(Protocol):
    """A kind's status; the runtime adds `observedGeneration` and the condition `Ready`."""

    def to_api(self) -> JsonObject:
        """Return the status as JSON for the API server."""


@dataclass(frozen=True, slots=True)
class Plan:
    """All desired children of one object, and its status.

    `failing` is its phase while a step fails. `unexplained` are observed objects besides the steps'
    children that are not as they should be: the runtime looks up why, in their pods and events,
    and plans again with the result in `Observed.obstacles`.
    """

    steps: Sequence[Step]
    status: KindStatus
    problem: Problem | None = None
    requeue_after: timedelta | None = None
    events: Sequence[Event] = ()
    finalized: bool = True
    failing: str = ""
    unexplained: Sequence[JsonObject] = ()

    def __post_init__(self) -> None:
        """Reject a step that depends on one that does not precede it."""
        before: set[str] = set()
        for step in self.steps:
            if step.depends_on and (unknown := set(step.depends_on) - before):
                raise ValueError(
                    f"step {step.name} depends on {', '.join(sorted(unknown))}, which does not "
                    "precede it"
                )
            before.add(step.name)


@dataclass(slots=True)
class Observed:
    """The observed state of an object: its children, and the objects that its kind reads.

    By default, nothing exists yet. The runtime reads it from its caches; a test, or a plan without
    a cluster, uses plain values: `children`, and `found` by (resource, index, value).
    """

    children: Sequence[JsonObject] = ()
    found: Mapping[tuple[Resource, str, str], Sequence[JsonObject]] = field(default_factory=dict)
    served: frozenset[Resource] = frozenset()
    settings: Mapping[str, Any] = field(default_factory=dict)
    """The settings of the process that planners may depend on."""
    obstacles: Mapping[str, Problem] = field(default_factory=dict)
    """Why the plan's `unexplained` objects are not as they should be, by uid."""

    def child(
        self, resource: Resource, name: str, namespace: str | None = None
    ) -> JsonObject | None:
        """Return a child of the object; None if there is none, or if another owner has the name.

        `namespace` is needed for the child of a cluster-scoped object only.
        """
        identity = (resource.api_version, resource.kind, name)
        for child in self.children:
            about = child["metadata"]
            if (child["apiVersion"], child["kind"], about["name"]) != identity:
                continue
            if namespace is None or about.get("namespace") == namespace:
                return child
        return None

    def find(self, resource: Resource, index: str, value: str) -> Sequence[JsonObject]:
        """Return the objects in the same namespace, or in none, whose index `index` has `value`."""
        return self.found.get((resource, index, value), ())

    def serves(self, resource: Resource) -> bool:
        """Return whether the API server has this resource."""
        return resource in self.served
