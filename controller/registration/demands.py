"""Which requests the API server must send to the webhook, and in which namespaces."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Self

from config.api.match import MatchClause
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
    """The namespaces in which requests of one target are sent, and the users that are excluded."""

    places: set[NamespaceScope] = field(default_factory=set)
    users: frozenset[str] | None = None
    """Patterns of user names that all policies exclude; None as long as there is no policy."""
    groups: frozenset[str] | None = None

    def add(
        self, places: set[NamespaceScope], users: frozenset[str], groups: frozenset[str]
    ) -> None:
        """Add namespaces of a policy or a demand; exclude only users that both exclude."""
        self.places |= places
        self.users = users if self.users is None else self.users & users
        self.groups = groups if self.groups is None else self.groups & groups

    def merge(self, other: Self) -> None:
        """Add another demand."""
        self.add(other.places, other.users or frozenset(), other.groups or frozenset())


def demands(engine: Engine, *, mutating: bool, fails_closed: bool) -> dict[DemandKey, Demand]:
    """Return the demand of each target, from the policies of this kind and failure policy."""
    found: dict[DemandKey, Demand] = {}
    judged: dict[tuple[str, str], set[NamespaceScope]] = {}
    for bound in engine.policies:
        if bound.fails_closed is fails_closed:
            applies = (bound.policy.mutate if mutating else bound.policy.validate) is not None
            clauses = list(_clauses_with_places(bound))
            for key in _keys(bound.policy.targets, engine.versions_sent):
                if bound.namespace is not None and not key[0].namespaced:
                    continue
                places = {place for clause, place in clauses if _selects(clause, *key)}
                if places and applies:
                    found.setdefault(key, Demand()).add(places, *excluded(bound))
                if not key[1]:
                    judged.setdefault((key[0].group, key[0].plural), set()).update(places)
    for planner in () if mutating else engine.planners:
        if places := _judging_children(engine.planners, planner, judged, fails_closed):
            for key in _keys(planner.targets, engine.versions_sent):
                found.setdefault(key, Demand()).add(places, frozenset(), frozenset())
    return found


def _keys(targets: Iterable[Target], sent: Mapping[Kind, tuple[str, ...]]) -> Iterator[DemandKey]:
    for target in targets:
        kind = replace(target.kind, versions=sent.get(target.kind, target.kind.versions))
        yield from ((kind, target.subresource, operation) for operation in target.operations)


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
        return {EVERYWHERE}  # the schema of the child's type may reject it
    return set().union(*(judged.get((child.group, child.plural), ()) for child in children))


def _clauses_with_places(bound: BoundPolicy) -> Iterator[tuple[MatchClause, NamespaceScope]]:
    """Yield the clauses of a policy that can select a namespace, each with its namespaces.

    Labels of objects and pods do not narrow it, since the author of the object sets them. Names of
    objects do not narrow it either. A tenant's policy applies in its whole namespace, so that no
    clause of a tenant adds a webhook, or widens those for other namespaces.
    """
    for clause in bound.match.written or (MatchClause(),):
        place = place_of(clause)
        if place is not None and bound.namespace is not None:
            tenant = frozenset({NamePatterns((bound.namespace,))})
            place = None if simplified(place | tenant) is None else tenant
        if place is not None:
            yield clause, place


def _selects(clause: MatchClause, kind: Kind, subresource: str, operation: str) -> bool:
    """Return whether a clause can select requests of a target, in its namespaces."""
    restricts = clause.namespaces is not None or clause.namespace_selector is not None
    has_namespace = kind.namespaced or (kind.group, kind.plural) == NAMESPACES
    return (
        (clause.kinds is None or kind.kind in clause.kinds)
        and (clause.operations is None or operation in clause.operations)
        and (clause.subresources is None or subresource in clause.subresources)
        and (has_namespace or not restricts)
        and (clause.pod_selector is None or kind.pod_metadata is not None)
    )


def excluded(bound: BoundPolicy) -> tuple[frozenset[str], frozenset[str]]:
    """Return the patterns of the users and of the groups that a policy excludes."""
    users, groups = bound.match.users, bound.match.groups
    return frozenset(users or ()), frozenset(groups or ())
