"""The planners of kinds: which children an object would have, and of which kinds.

The functions are handed in when a process is put together: nothing here knows how a plan is made.
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
    """One object that would be made, and for each of its fields (or what holds them) the field it comes from.

    A child made `once` is never updated; a child that is not `owned` outlives its parent.
    """

    object: Object
    origin: Mapping[str, str] = field(default_factory=dict)
    once: bool = False
    owned: bool = True


class RefusedError(ValueError):
    """An object that is not what its type says, so that nothing can be made of it."""

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
    """Whose requests it would be: the controller's user."""

    username: str
    groups: tuple[str, ...]


def service_account(namespace: str, name: str) -> ControllerUser:
    """Return the user that a ServiceAccount is."""
    groups = (SERVICE_ACCOUNTS, f"{SERVICE_ACCOUNTS}:{namespace}", "system:authenticated")
    return ControllerUser(f"system:serviceaccount:{namespace}:{name}", groups)


PUBLISHED = service_account("gatewright-system", "gatewright-controller-manager")


class Planners:
    """All planners, the account they are carried out by, and the namespaces that are looked after; none are all.

    `chose` tells whether an image is one that planners choose themselves.
    """

    def __init__(
        self,
        planners: Iterable[Planner] = (),
        controller_user: ControllerUser = PUBLISHED,
        namespaces: Iterable[str] = (),
        is_chosen: Callable[[str], bool] = lambda image: False,
    ) -> None:
        """Index them by what they are asked about."""
        self.controller_user = controller_user
        self.is_chosen = is_chosen
        self._namespaces = frozenset(namespaces)
        self._planners = {_resource(planner.kind): planner for planner in planners}
        self._asked = {key: planner for planner in self for target in planner.targets for key in target.keys}

    def __iter__(self) -> Iterator[Planner]:
        """Go through them."""
        return iter(self._planners.values())

    def asked_about(self, attributes: Attributes) -> Planner | None:
        """Return the planner that a request affects, if the kind is managed in its namespace."""
        if self._namespaces and attributes.namespace not in self._namespaces:
            return None
        return self._asked.get(attributes.target)

    def of(self, group: str, resource: str) -> Planner | None:
        """Return the planner for a resource, None where nothing is made of it."""
        return self._planners.get((group, resource))

    def filled(self, kind: Kind, object: Object) -> Object:
        """Return an object that would be made with what the API server fills in."""
        planner = self.of(kind.group, kind.plural)
        return object if planner is None else planner.filled(object)

    def has_optional(self, planner: Planner) -> bool:
        """Return whether the plan of any child or grandchild depends on the API server's resources."""
        makers = (self.of(kind.group, kind.plural) for kind in self.reach(planner))
        return any(each is not None and each.optional for each in (planner, *makers))

    def reach(self, planner: Planner) -> tuple[Kind, ...]:
        """Return the kinds of all children and grandchildren."""
        found: dict[ResourceKey, Kind] = {}
        left = list(planner.makes)
        while left:
            kind = left.pop()
            key = _resource(kind)
            if key not in found:
                found[key] = kind
                left += self._planners[key].makes if key in self._planners else ()
        return tuple(found.values())


def _resource(kind: Kind) -> ResourceKey:
    return kind.group, kind.plural
