"""What a kind's planner is given and what it answers: values only, no client and no clock."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal, NamedTuple, Protocol

from kube.resource import Resource

Object = dict[str, Any]


class Random(NamedTuple):
    """A secret value of `length` characters that the runtime makes up: a plan never holds it."""

    length: int = 32


class Reference(NamedTuple):
    """One object and no other: a new one of the same name has another uid."""

    resource: Resource
    name: str
    uid: str
    namespace: str | None = None


# Apply, Step and Plan are values as all here, and nobody changes them; frozen they would take three times as long to
# make, and every reconcile makes some.
@dataclass(slots=True)
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
    takes one with these labels as it is. `origin` is that of an `Apply`.
    """

    object: Object
    generate: Mapping[str, Random] = field(default_factory=dict)
    known_by: Mapping[str, str] = field(default_factory=dict)
    origin: Mapping[str, str] = field(default_factory=dict)


class Patch(NamedTuple):
    """Fields of somebody else's object: only these, under a field manager of their own."""

    reference: Reference
    fields: Object


class Delete(NamedTuple):
    """The only way to remove an object: leaving it out of a plan removes nothing."""

    reference: Reference


Write = Apply | Once | Patch | Delete


def identity(write: Write) -> object:
    """Return what tells the writes of one plan apart, also when it is made again."""
    match write:
        case Apply(object) | Once(object):
            return object["apiVersion"], object["kind"], object["metadata"]["name"]
        case Patch(reference) | Delete(reference):
            return reference


class Problem(NamedTuple):
    """Something that is wrong; as a plan's own problem, a permanent error: only a change of the object can mend it."""

    message: str
    reason: str = "Incomplete"


def incomplete(*fields: str) -> Problem:
    """Return the problem of fields that are not set and have no default."""
    return Problem(f"{', '.join(fields)}: must be set")


@dataclass(slots=True)
class Step:
    """One part of what should exist; always in the plan, whatever exists already.

    The objects of a step are created once all its `needs` hold; those that exist are kept right regardless. A step may
    have a `condition` of its own in the status, which says its `note`: what is waited for, or what is wrong with what
    was made. Without one, Ready says it.
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


@dataclass(slots=True)
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
            if step.needs and (unknown := set(step.needs) - before):
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
