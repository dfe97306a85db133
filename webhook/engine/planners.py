"""The planners of kinds: which children an object would have, and of which kinds.

The process that builds an engine supplies the functions: the engine does not know how objects are planned.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from webhook.engine.kinds import Kind, Target
from webhook.engine.request import Attributes
from webhook.engine.violation import Violation

Object = dict[str, Any]
ResourceKey = tuple[str, str]  # group and plural
Served = Collection[ResourceKey]

SERVED = "served_apis"  # the look-up of which optional resources the API server has
SERVICE_ACCOUNTS = "system:serviceaccounts"


@dataclass(frozen=True, slots=True)
class PlannedObject:
    """One object that would be created, and for its fields (or those above them) the parent's fields they come from.

    A child created `once` is never updated; a child that is not `owned` outlives its parent.
    """

    object: Object
    origin: Mapping[str, str] = field(default_factory=dict)
    once: bool = False
    owned: bool = True


class RefusedError(ValueError):
    """An object that its type rejects, so that it has no plan."""

    def __init__(self, violations: Sequence[Violation]) -> None:
        """Take what is wrong with it."""
        super().__init__("; ".join(violation.message for violation in violations))
        self.violations = tuple(violations)


@dataclass(frozen=True, slots=True)
class Planner:
    """The planner of one kind.

    `makes` are the kinds of it; `plan` returns all of it, in order, or raises RefusedError, given the time and which of
    the `optional` ones the API server has; `filled` returns an object with the defaults that the API server fills in;
    `replicas` is the field that its /scale sets, where it has one.
    """

    kind: Kind
    makes: tuple[Kind, ...]
    plan: Callable[[Object, datetime, Served], Sequence[PlannedObject]]
    filled: Callable[[Object], Object]
    replicas: str | None = None
    optional: tuple[Kind, ...] = ()

    @property
    def targets(self) -> tuple[Target, ...]:
        """The targets that the plan depends on: the object, and its /scale if it has one."""
        whole = Target(self.kind)
        return (whole,) if self.replicas is None else (whole, Target(self.kind, "scale", ("UPDATE",)))

    def planned_kind(self, object: Object) -> Kind:
        """Return the kind of a planned child. Raises LookupError if it is not declared."""
        group = str(object["apiVersion"]).rpartition("/")[0]
        for kind in self.makes:
            if (kind.group, kind.kind) == (group, object["kind"]):
                return kind
        raise LookupError(f"{self.kind.kind} does not declare the child {object['apiVersion']} {object['kind']}")


@dataclass(frozen=True, slots=True)
class ControllerUser:
    """The user whose requests create the children."""

    username: str = ""
    groups: tuple[str, ...] = ()


class Planners:
    """All planners, the user who carries out their plans, and the namespaces where the controller works: none are all.

    `is_chosen` returns whether an image is one that planners choose themselves.
    """

    def __init__(
        self,
        planners: Iterable[Planner] = (),
        controller_user: ControllerUser = ControllerUser(),
        namespaces: Iterable[str] = (),
        is_chosen: Callable[[str], bool] = lambda image: False,
    ) -> None:
        """Index them by what they are asked about."""
        self.controller_user = controller_user
        self.is_chosen = is_chosen
        self._namespaces = frozenset(namespaces)
        self._planners = {planner.kind: planner for planner in planners}
        self._asked = {key: planner for planner in self for target in planner.targets for key in target.keys}

    def __iter__(self) -> Iterator[Planner]:
        """Go through them."""
        return iter(self._planners.values())

    def asked_about(self, attributes: Attributes) -> Planner | None:
        """Return the planner that a request affects, if the kind is managed in its namespace."""
        if self._namespaces and attributes.namespace not in self._namespaces:
            return None
        return self._asked.get(attributes.target)

    def of(self, kind: Kind) -> Planner | None:
        """Return the planner of a kind, None where its objects have no children."""
        return self._planners.get(kind)

    def reach(self, planner: Planner) -> frozenset[Kind]:
        """Return the kinds of all children and grandchildren."""
        found = frozenset(planner.makes)
        while found != (more := found.union(*(self._planners[kind].makes for kind in found if kind in self._planners))):
            found = more
        return found


NO_PLANNERS = Planners()
