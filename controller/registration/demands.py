"""What the API server must ask the webhook, and in which namespaces: the registration's input."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Self

from controller.registration.scope import (
    EVERYWHERE,
    NamePatterns,
    NamespaceScope,
    place_of,
    simplified,
)
from webhook.engine import BoundPolicy, Engine
from webhook.engine.kinds import NAMESPACES, Kind, Target
from webhook.engine.planners import Planner, Planners

DemandKey = tuple[Kind, str, str]  # kind, subresource, operation


@dataclass(slots=True)
class Demand:
    """Where requests of one target must be sent, and whose requests no policy looks at."""

    places: set[NamespaceScope] = field(default_factory=set)
    users: frozenset[str] | None = None
    """Patterns of user names that all policies exclude; None as long as there is no policy."""
    groups: frozenset[str] | None = None

    def add(
        self, places: set[NamespaceScope], users: frozenset[str], groups: frozenset[str]
    ) -> None:
        """Add what one policy, or another demand, asks for."""
        self.places |= places
        self.users = users if self.users is None else self.users & users
        self.groups = groups if self.groups is None else self.groups & groups

    def merge(self, other: Self) -> None:
        """Add what another demand asks for."""
        self.add(other.places, other.users or frozenset(), other.groups or frozenset())


def demands(engine: Engine, *, mutating: bool, fails_closed: bool) -> dict[DemandKey, Demand]:
    """Return for each target what policies of one sort ask for."""
    found: dict[DemandKey, Demand] = {}
    judged: dict[tuple[str, str], set[NamespaceScope]] = {}
    for bound in engine.policies:
        if bound.fails_closed is fails_closed:
            is_asked = (bound.policy.mutate if mutating else bound.policy.validate) is not None
            for key in _keys(bound.policy.targets):
                places = set(places_of(bound, *key))
                if places and is_asked:
                    found.setdefault(key, Demand()).add(places, *excluded(bound))
                if not key[1]:
                    judged.setdefault((key[0].group, key[0].plural), set()).update(places)
    for planner in () if mutating else engine.planners:
        if places := _judging_children(engine.planners, planner, judged, fails_closed):
            for key in _keys(planner.targets):
                found.setdefault(key, Demand()).add(places, frozenset(), frozenset())
    return found


def _keys(targets: Iterable[Target]) -> Iterator[DemandKey]:
    return (
        (target.kind, target.subresource, operation)
        for target in targets
        for operation in target.operations
    )


def _judging_children(
    planners: Planners,
    planner: Planner,
    judged: Mapping[tuple[str, str], set[NamespaceScope]],
    fails_closed: bool,
) -> set[NamespaceScope]:
    """Return where a parent's planned children, which are in its namespace, can be denied.

    The parent's user does not matter: its children are the controller's requests.
    """
    children = planners.reach(planner)
    if fails_closed and any(planners.of(child) is not None for child in children):
        return {EVERYWHERE}  # the child's own type may refuse it
    return set().union(*(judged.get((child.group, child.plural), ()) for child in children))


def places_of(
    bound: BoundPolicy, kind: Kind, subresource: str, operation: str
) -> Iterator[NamespaceScope]:
    """Yield where a policy can apply to requests of a target.

    Labels of objects and pods never narrow, since the author of the object sets them. Nor do names
    of objects.
    """
    has_namespace = kind.namespaced or (kind.group, kind.plural) == NAMESPACES
    if bound.namespace is not None and not kind.namespaced:
        return
    tenant: NamespaceScope = (
        EVERYWHERE if bound.namespace is None else frozenset({NamePatterns((bound.namespace,))})
    )
    if not bound.match.written:
        yield tenant
    for clause in bound.match.written:
        restricts = clause.namespaces is not None or clause.namespace_selector is not None
        selects = (
            (clause.kinds is None or kind.kind in clause.kinds)
            and (clause.operations is None or operation in clause.operations)
            and (clause.subresources is None or subresource in clause.subresources)
            and (has_namespace or not restricts)
            and (clause.pod_selector is None or kind.pod_metadata is not None)
        )
        place = place_of(clause) if selects else None
        if place is not None and (narrowed := simplified(place | tenant)) is not None:
            yield narrowed


def excluded(bound: BoundPolicy) -> tuple[frozenset[str], frozenset[str]]:
    """Return the patterns of the users and of the groups whose requests a policy never looks at."""
    users, groups = bound.match.users, bound.match.groups
    return frozenset(users or ()), frozenset(groups or ())
