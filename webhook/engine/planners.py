"""The planners of kinds, which return the children that an object would have.

The process that builds an engine supplies them: the engine does not import planners.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, NamedTuple

from kube.resource import JsonObject
from webhook.engine.kinds import Kind, Target
from webhook.engine.request import Attributes
from webhook.engine.violation import Violation

ResourceKey = tuple[str, str]  # group and plural
Served = Collection[ResourceKey]

SERVED = "served_apis"  # the look-up of the optional resources that the API server serves


class PlannedObject(NamedTuple):
    """An object to create, and the parent's field that each of its fields comes from.

    It has the API server's defaults. A child created `once` is never updated; a child that is not
    `owned` outlives its parent.
    """

    kind: Kind
    object: JsonObject
    origin: Mapping[str, str] = {}
    once: bool = False
    owned: bool = True

    @property
    def identity(self) -> tuple[Kind, str]:
        """Its identity among its siblings: kind and name."""
        return self.kind, self.object["metadata"]["name"]


class PlannedChildren(NamedTuple):
    """The plan for an object: all its children in order, or the reason why its type rejects it."""

    children: Sequence[PlannedObject] = ()
    refused: Sequence[Violation] = ()


@dataclass(frozen=True, slots=True)
class Planner:
    """The planner of one kind. Like a policy that fails closed, a failure denies.

    `child_kinds` are the kinds of its children. `plan` plans an object, given the time and the
    `optional` kinds that the API server has. `replicas` is the field that its /scale sets, if it
    has one.
    """

    kind: Kind
    child_kinds: tuple[Kind, ...]
    plan: Callable[[JsonObject, datetime, Served], PlannedChildren]
    replicas: str | None = None
    optional: tuple[Kind, ...] = ()
    actions: ClassVar = frozenset({"Deny"})
    fails_closed: ClassVar = True

    @property
    def title(self) -> str:
        """The name of the object in messages."""
        return f"{self.kind.kind.lower()}-plan"

    @property
    def targets(self) -> tuple[Target, ...]:
        """The targets that the plan depends on: the object, and its /scale if it has one."""
        scale = () if self.replicas is None else (Target(self.kind, "scale", ("UPDATE",)),)
        return Target(self.kind), *scale


@dataclass(frozen=True, slots=True)
class ControllerUser:
    """The user whose requests create the children."""

    username: str = ""
    groups: tuple[str, ...] = ()


class Planners:
    """All planners, the controller's account, and its namespaces (none: all).

    `is_chosen` returns whether a planner chose an image.
    """

    def __init__(
        self,
        planners: Iterable[Planner] = (),
        controller_user: ControllerUser = ControllerUser(),
        namespaces: Iterable[str] = (),
        is_chosen: Callable[[str], bool] = lambda image: False,
    ) -> None:
        """Index them by target."""
        self.controller_user = controller_user
        self.is_chosen = is_chosen
        self._namespaces = frozenset(namespaces)
        self._planners = {planner.kind: planner for planner in planners}
        self.by_target = {
            key: planner for planner in self for target in planner.targets for key in target.keys
        }

    def __iter__(self) -> Iterator[Planner]:
        """Iterate over them."""
        return iter(self._planners.values())

    def of_request(self, attributes: Attributes) -> Planner | None:
        """Return the planner that a request affects, if the kind is managed in its namespace."""
        if self._namespaces and attributes.namespace not in self._namespaces:
            return None
        return self.by_target.get(attributes.target)

    def of(self, kind: Kind) -> Planner | None:
        """Return the planner of a kind; None if its objects have no children."""
        return self._planners.get(kind)

    def reach(self, planner: Planner) -> frozenset[Kind]:
        """Return the kinds of all children and grandchildren."""
        kinds = list(planner.child_kinds)
        for kind in kinds:  # the list grows during the loop
            if kind in self._planners:
                kinds += [each for each in self._planners[kind].child_kinds if each not in kinds]
        return frozenset(kinds)


NO_PLANNERS = Planners()
