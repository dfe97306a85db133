"""Which requests the API server must send to the webhook, and in which namespaces."""

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeVar

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
from webhook.engine.planners import Planners

T = TypeVar("T")
MAX_SHAPES = 20_000  # kept by a DemandReader
NOBODY = frozenset[str]()
DemandKey = tuple[Kind, str, str]  # kind, subresource, operation
ResourceName = tuple[str, str]  # group and plural
PolicyId = tuple[str | None, str]  # namespace of a tenant's policy, and name


class Sort(NamedTuple):
    """A sort of webhook: policies of different sorts never share one."""

    mutating: bool
    fails_closed: bool


SORTS = tuple(Sort(*each) for each in ((False, True), (False, False), (True, True), (True, False)))


@dataclass(slots=True)
class Demand:
    """The namespaces in which requests of one target are sent, and the users that are excluded."""

    places: set[NamespaceScope] = field(default_factory=set)
    users: frozenset[str] | None = None
    """Patterns of user names that all policies exclude; None as long as there is no policy."""
    groups: frozenset[str] | None = None

    def add(
        self, places: Iterable[NamespaceScope], users: frozenset[str], groups: frozenset[str]
    ) -> None:
        """Add namespaces of a policy or a demand; exclude only users that both exclude."""
        self.places.update(places)
        self.users = users if self.users is None else self.users & users
        self.groups = groups if self.groups is None else self.groups & groups


@dataclass(slots=True)
class Demands:
    """The demands of one sort: the platform's, and the namespaces of tenants, by target.

    A tenant's policy is sent whole: its clauses about other namespaces, or about users, neither
    add a webhook nor widen one.
    """

    platform: dict[DemandKey, Demand] = field(default_factory=dict)
    tenants: dict[DemandKey, set[str]] = field(default_factory=dict)


class ClausePlace(NamedTuple):
    """A clause that can select a namespace, and the namespaces that it selects."""

    clause: MatchClause
    place: NamespaceScope


@dataclass(slots=True)
class AlikePolicies:
    """Policies that judge the same targets by clauses of one shape: they differ in namespaces."""

    example: BoundPolicy
    clauses: tuple[ClausePlace, ...]
    places: list[set[NamespaceScope]]  # of each clause
    users: frozenset[str]
    groups: frozenset[str]
    namespaces: set[str] = field(default_factory=set)  # of tenants
    policies: list[BoundPolicy] = field(default_factory=list)


class PolicyShape(NamedTuple):
    """What a policy contributes, read once: see `AlikePolicies`. Alike policies share a number."""

    policy: BoundPolicy
    clauses: tuple[ClausePlace, ...]
    number: int


class DemandReader:
    """Reads demands from engines; what it read of a policy is kept for the next engine."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._shapes: dict[int, PolicyShape] = {}
        self._numbers: dict[Hashable, int] = {}

    def alike(self, engine: Engine) -> list[AlikePolicies]:
        """Return the policies of an engine, grouped by what they ask for."""
        shapes: dict[int, PolicyShape] = {}
        found: dict[int, AlikePolicies] = {}
        for bound in engine.policies:
            known = self._shapes.get(id(bound))
            if known is None or known.policy is not bound:
                clauses = tuple(_clauses_with_places(bound))
                number = self._numbers.setdefault(_shape(bound, clauses), len(self._numbers))
                known = PolicyShape(bound, clauses, number)
            shapes[id(bound)] = known
            users, groups = excluded(bound)
            group = found.get(known.number)
            if group is None:
                places = [set[NamespaceScope]() for _ in known.clauses]
                group = AlikePolicies(bound, known.clauses, places, users, groups)
                found[known.number] = group
            if bound.namespace is None:
                for places_of_clause, each in zip(group.places, known.clauses, strict=True):
                    places_of_clause.add(each.place)
            elif known.clauses:
                group.namespaces.add(bound.namespace)
            group.users &= users
            group.groups &= groups
            group.policies.append(bound)
        self._shapes = shapes
        if len(self._numbers) > MAX_SHAPES:  # most of them of policies that are gone
            self._shapes, self._numbers = {}, {}
        return list(found.values())


def demands(engine: Engine, alike: Iterable[AlikePolicies], sort: Sort) -> Demands:
    """Return the demand of each target, from the policies of this sort."""
    found = Demands()
    judged: dict[ResourceName, set[NamespaceScope]] = {}
    judged_by_tenants: dict[ResourceName, set[str]] = {}
    of_sort = [each for each in alike if each.example.fails_closed is sort.fails_closed]
    for group in of_sort:
        applies = _applies(group.example, sort)
        is_tenants = group.example.namespace is not None
        for key, indexes in _selected(group, engine.versions_sent):
            resource = key[0].group, key[0].plural
            places = set[NamespaceScope]().union(*(group.places[index] for index in indexes))
            if applies and is_tenants:
                found.tenants.setdefault(key, set()).update(group.namespaces)
            elif applies:
                found.platform.setdefault(key, Demand()).add(places, group.users, group.groups)
            if not key[1]:
                judged.setdefault(resource, set()).update(places)
                judged_by_tenants.setdefault(resource, set()).update(group.namespaces)
    for planner in () if sort.mutating else engine.planners:
        children = engine.planners.reach(planner)
        places = _judging_children(engine.planners, children, judged, sort)
        namespaces = _union_of(judged_by_tenants, children)
        for key in _keys(planner.targets, engine.versions_sent):
            if places:
                found.platform.setdefault(key, Demand()).add(places, NOBODY, NOBODY)
            if namespaces:
                found.tenants.setdefault(key, set()).update(namespaces)
    return found


def policies_asking(
    engine: Engine, alike: Iterable[AlikePolicies], sort: Sort, widened: set[DemandKey]
) -> Iterator[BoundPolicy]:
    """Yield the policies of a sort that ask for some targets in a part of the namespaces."""
    for group in alike:
        if group.example.fails_closed is not sort.fails_closed or not _applies(group.example, sort):
            continue
        if any(key in widened for key, _ in _selected(group, engine.versions_sent)):
            is_open = group.example.namespace is None and any(
                EVERYWHERE in places for places in group.places
            )
            yield from () if is_open else group.policies


def _applies(bound: BoundPolicy, sort: Sort) -> bool:
    return (bound.policy.mutate if sort.mutating else bound.policy.validate) is not None


def _shape(bound: BoundPolicy, clauses: Iterable[ClausePlace]) -> Hashable:
    """Return what policies have in common that differ in namespaces and users only."""
    fields = tuple(
        (
            frozenset(each.clause.kinds or ()),
            frozenset(each.clause.operations or ()),
            None if each.clause.subresources is None else frozenset(each.clause.subresources),
            each.clause.pod_selector is None,
            _restricts(each.clause),
            each.place == EVERYWHERE,
        )
        for each in clauses
    )
    policy = bound.policy
    sort = policy.validate is None, policy.mutate is None, bound.fails_closed
    return bound.targets, bound.namespace is None, sort, fields


def _selected(
    group: AlikePolicies, sent: Mapping[Kind, tuple[str, ...]]
) -> Iterator[tuple[DemandKey, list[int]]]:
    """Yield each target of alike policies, with the indexes of the clauses that select it."""
    for key in _keys(group.example.targets, sent):
        if group.example.namespace is not None and not key[0].namespaced:
            continue
        indexes = [index for index, each in enumerate(group.clauses) if _selects(each.clause, *key)]
        if indexes:
            yield key, indexes


def _keys(targets: Iterable[Target], sent: Mapping[Kind, tuple[str, ...]]) -> Iterator[DemandKey]:
    for target in targets:
        kind = replace(target.kind, versions=sent.get(target.kind, target.kind.versions))
        yield from ((kind, target.subresource, operation) for operation in target.operations)


def _judging_children(
    planners: Planners,
    children: Iterable[Kind],
    judged: Mapping[ResourceName, set[NamespaceScope]],
    sort: Sort,
) -> set[NamespaceScope]:
    """Return where a parent's planned children, which are in its namespace, can be denied.

    The parent's user does not matter: its children are the controller's requests.
    """
    if sort.fails_closed and any(planners.of(child) is not None for child in children):
        return {EVERYWHERE}  # the schema of the child's type may reject it
    return _union_of(judged, children)


def _union_of(judged: Mapping[ResourceName, set[T]], kinds: Iterable[Kind]) -> set[T]:
    return set[T]().union(*(judged.get((kind.group, kind.plural), ()) for kind in kinds))


def _clauses_with_places(bound: BoundPolicy) -> Iterator[ClausePlace]:
    """Yield the clauses of a policy that can select a namespace, each with its namespaces.

    Labels of objects and pods do not narrow it, since the author of the object sets them. Names of
    objects do not narrow it either. A tenant's policy applies in its whole namespace.
    """
    for clause in bound.match.written or (MatchClause(),):
        place = place_of(clause)
        if place is not None and bound.namespace is not None:
            tenant = frozenset({NamePatterns((bound.namespace,))})
            place = None if simplified(place | tenant) is None else tenant
        if place is not None:
            yield ClausePlace(clause, place)


def _restricts(clause: MatchClause) -> bool:
    return clause.namespaces is not None or clause.namespace_selector is not None


def _selects(clause: MatchClause, kind: Kind, subresource: str, operation: str) -> bool:
    """Return whether a clause can select requests of a target, in its namespaces."""
    has_namespace = kind.namespaced or (kind.group, kind.plural) == NAMESPACES
    return (
        (clause.kinds is None or kind.kind in clause.kinds)
        and (clause.operations is None or operation in clause.operations)
        and (clause.subresources is None or subresource in clause.subresources)
        and (has_namespace or not _restricts(clause))
        and (clause.pod_selector is None or kind.pod_metadata is not None)
    )


def excluded(bound: BoundPolicy) -> tuple[frozenset[str], frozenset[str]]:
    """Return the patterns of the users and of the groups that a policy excludes."""
    users, groups = bound.match.users, bound.match.groups
    return frozenset(users or ()), frozenset(groups or ())
