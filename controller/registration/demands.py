"""Which requests the API server must send to the webhook, and in which namespaces."""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeVar

from config.api.match import MatchClause
from controller.registration.scope import (
    EVERYWHERE,
    NamePatterns,
    NamespaceScope,
    place_of,
    simplify,
)
from webhook.engine import BoundPolicy, Engine
from webhook.engine.kinds import NAMESPACES, Kind, Target
from webhook.engine.planners import Planners

T = TypeVar("T")
NOBODY = frozenset[str]()
ANYWHERE = frozenset({EVERYWHERE})
DemandKey = tuple[Kind, str, str]  # kind, subresource, operation
ResourceName = tuple[str, str]  # group and plural
# Scopes in which objects are judged, by identity, as in a Demand.
Judged = dict[ResourceName, dict[int, frozenset[NamespaceScope]]]
PolicyId = tuple[str | None, str]  # namespace of a tenant's policy, and name


class Sort(NamedTuple):
    """A sort of webhook: policies of different sorts never share one."""

    mutating: bool
    fails_closed: bool


SORTS = tuple(Sort(*each) for each in ((False, True), (False, False), (True, True), (True, False)))


@dataclass(slots=True)
class Demand:
    """The namespaces in which requests of one target are sent, and the users that are excluded."""

    parts: dict[int, frozenset[NamespaceScope]] = field(default_factory=dict)
    """Scopes of policies and demands by identity: thousands are shared by several targets."""
    users: frozenset[str] | None = None
    """Patterns of user names that all policies exclude; None as long as there is no policy."""
    groups: frozenset[str] | None = None

    @property
    def places(self) -> frozenset[NamespaceScope]:
        """The scopes, in any of which requests are sent."""
        return frozenset[NamespaceScope]().union(*self.parts.values())

    def add(
        self, places: frozenset[NamespaceScope], users: frozenset[str], groups: frozenset[str]
    ) -> None:
        """Add namespaces of a policy or a demand; exclude only users that both exclude."""
        self.parts[id(places)] = places
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


class PolicyShape(NamedTuple):
    """What a policy contributes, read once: see `AlikePolicies`. Alike policies share a shape."""

    policy: BoundPolicy
    clauses: tuple[ClausePlace, ...]
    shape: Hashable
    excluded: tuple[frozenset[str], frozenset[str]]  # users and groups


class AlikePolicies:
    """Policies that judge the same targets by clauses of one shape: they differ in namespaces."""

    def __init__(self) -> None:
        """Begin without any."""
        self._shapes: dict[int, PolicyShape] = {}
        self._excluded = Counter[tuple[frozenset[str], frozenset[str]]]()
        self.places: list[Counter[NamespaceScope]] = []
        """For each clause, the number of policies for each scope."""
        self.namespaces = Counter[str]()
        """The number of policies for each tenant's namespace."""

    def __len__(self) -> int:
        return len(self._shapes)

    @property
    def policies(self) -> Iterator[BoundPolicy]:
        """The policies, in any order."""
        return (each.policy for each in self._shapes.values())

    @property
    def example(self) -> BoundPolicy:
        """One of them."""
        return next(self.policies)

    @property
    def clauses(self) -> tuple[ClausePlace, ...]:
        """The clauses of one of them."""
        return next(iter(self._shapes.values())).clauses

    @property
    def users(self) -> frozenset[str]:
        """Patterns of users that all of them exclude."""
        return frozenset.intersection(*(users for users, _ in self._excluded))

    @property
    def groups(self) -> frozenset[str]:
        """Patterns of groups that all of them exclude."""
        return frozenset.intersection(*(groups for _, groups in self._excluded))

    def put(self, shape: PolicyShape) -> bool:
        """Add a policy; return whether it adds a scope, a namespace, or excluded users."""
        self._shapes[id(shape.policy)] = shape
        if not self.places:
            self.places = [Counter() for _ in shape.clauses]
        return self._count(shape, 1)

    def remove(self, shape: PolicyShape) -> bool:
        """Remove a policy; return whether a scope, a namespace, or excluded users go with it."""
        del self._shapes[id(shape.policy)]
        return self._count(shape, -1)

    def _count(self, shape: PolicyShape, step: int) -> bool:
        """Change the numbers for a policy; return whether one was, or becomes, zero."""
        is_changed = False
        for counter, key in self._counters(shape):
            counter[key] += step
            is_changed |= counter[key] == max(step, 0)
            if not counter[key]:
                del counter[key]
        return is_changed

    def _counters(self, shape: PolicyShape) -> Iterator[tuple[Counter[Any], Any]]:
        """Yield where a policy is counted, and as what."""
        yield self._excluded, shape.excluded
        if shape.policy.namespace is None:
            for places, clause in zip(self.places, shape.clauses, strict=True):
                yield places, clause.place
        elif shape.clauses:
            yield self.namespaces, shape.policy.namespace


class DemandReader:
    """Reads demands from engines; what it read of a policy is kept for the next engine."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._shapes: dict[int, PolicyShape] = {}
        self._alike: dict[Hashable, AlikePolicies] = {}
        self._sent: Mapping[Kind, tuple[str, ...]] = {}

    def read(self, engine: Engine) -> bool:
        """Read the policies of an engine that the last one had not.

        Return whether the demands of `alike` changed.
        """
        policies = dict(zip(map(id, engine.policies), engine.policies, strict=True))
        is_changed = engine.versions_sent != self._sent
        self._sent = engine.versions_sent
        gone = self._shapes.keys() - policies.keys()
        # First the new policies: one that replaces another often asks for the same.
        for number in policies.keys() - self._shapes.keys():
            bound = policies[number]
            clauses = tuple(_clauses_with_places(bound))
            shape = _shape(bound, clauses)
            new = self._shapes[number] = PolicyShape(bound, clauses, shape, excluded_users(bound))
            is_changed |= self._alike.setdefault(shape, AlikePolicies()).put(new)
        for number in gone:
            old = self._shapes.pop(number)
            group = self._alike[old.shape]
            is_changed |= group.remove(old)
            if not group:
                del self._alike[old.shape]
        return is_changed

    @property
    def alike(self) -> list[AlikePolicies]:
        """The policies of the last engine, grouped by what they ask for."""
        return list(self._alike.values())


def demands(engine: Engine, alike: Iterable[AlikePolicies], sort: Sort) -> Demands:
    """Return the demand of each target, from the policies of this sort."""
    collected = Demands()
    judged: Judged = {}
    judged_by_tenants: dict[ResourceName, set[str]] = {}
    of_sort = [each for each in alike if each.example.fails_closed is sort.fails_closed]
    for group in of_sort:
        applies = _applies(group.example, sort)
        is_tenants = group.example.namespace is not None
        users, groups = group.users, group.groups
        unions: dict[tuple[int, ...], frozenset[NamespaceScope]] = {}
        for key, indexes in _select_targets(group, engine.versions_sent):
            resource = key[0].group, key[0].plural
            if indexes not in unions:
                several = (group.places[index] for index in indexes)
                unions[indexes] = frozenset[NamespaceScope]().union(*several)
            places = unions[indexes]
            if applies and is_tenants:
                collected.tenants.setdefault(key, set()).update(group.namespaces)
            elif applies:
                collected.platform.setdefault(key, Demand()).add(places, users, groups)
            if not key[1]:
                judged.setdefault(resource, {})[id(places)] = places
                judged_by_tenants.setdefault(resource, set()).update(group.namespaces)
    if not sort.mutating:
        _add_parents(collected, engine, judged, judged_by_tenants, sort)
    # The order of webhooks depends on the policies, not on their history.
    return Demands(
        {key: collected.platform[key] for key in sorted(collected.platform, key=repr)},
        {key: collected.tenants[key] for key in sorted(collected.tenants, key=repr)},
    )


def _add_parents(
    collected: Demands,
    engine: Engine,
    judged: Judged,
    judged_by_tenants: Mapping[ResourceName, set[str]],
    sort: Sort,
) -> None:
    """Add the targets whose planned children can be denied."""
    for planner in engine.planners:
        children = engine.planners.reach(planner)
        parts = _judging_children(engine.planners, children, judged, sort)
        namespaces = _union_of(judged_by_tenants, children)
        for key in _keys(planner.targets, engine.versions_sent):
            for places in filter(None, parts):
                collected.platform.setdefault(key, Demand()).add(places, NOBODY, NOBODY)
            if namespaces:
                collected.tenants.setdefault(key, set()).update(namespaces)


def policies_asking(
    engine: Engine, alike: Iterable[AlikePolicies], sort: Sort, widened: set[DemandKey]
) -> Iterator[BoundPolicy]:
    """Yield the policies of a sort that ask for some targets in a part of the namespaces."""
    for group in alike:
        if group.example.fails_closed is not sort.fails_closed or not _applies(group.example, sort):
            continue
        if any(key in widened for key, _ in _select_targets(group, engine.versions_sent)):
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
            frozenset(clause.clause.kinds or ()),
            frozenset(clause.clause.operations or ()),
            None if clause.clause.subresources is None else frozenset(clause.clause.subresources),
            clause.clause.pod_selector is None,
            _restricts(clause.clause),
            clause.place == EVERYWHERE,
        )
        for clause in clauses
    )
    policy = bound.policy
    sort = policy.validate is None, policy.mutate is None, bound.fails_closed
    return bound.targets, bound.namespace is None, sort, fields


def _select_targets(
    group: AlikePolicies, sent: Mapping[Kind, tuple[str, ...]]
) -> Iterator[tuple[DemandKey, tuple[int, ...]]]:
    """Yield each target of alike policies, with the indexes of the clauses that select it."""
    for key in _keys(group.example.targets, sent):
        if group.example.namespace is not None and not key[0].namespaced:
            continue
        indexes = tuple(
            index for index, clause in enumerate(group.clauses) if _selects(clause.clause, *key)
        )
        if indexes:
            yield key, indexes


def _keys(targets: Iterable[Target], sent: Mapping[Kind, tuple[str, ...]]) -> Iterator[DemandKey]:
    for target in targets:
        kind = replace(target.kind, versions=sent.get(target.kind, target.kind.versions))
        yield from ((kind, target.subresource, operation) for operation in target.operations)


def _judging_children(
    planners: Planners,
    children: Iterable[Kind],
    judged: Judged,
    sort: Sort,
) -> Iterable[frozenset[NamespaceScope]]:
    """Return where a parent's planned children, which are in its namespace, can be denied.

    The parent's user does not matter: its children are the controller's requests.
    """
    if sort.fails_closed and any(planners.of(child) is not None for child in children):
        return (ANYWHERE,)  # the schema of the child's type may reject it
    scopes = dict[int, frozenset[NamespaceScope]]()
    for kind in children:
        scopes |= judged.get((kind.group, kind.plural), {})
    return scopes.values()


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
            place = None if simplify(place | tenant) is None else tenant
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
        and (clause.pod_selector is None or kind.has_pods)
    )


def excluded_users(bound: BoundPolicy) -> tuple[frozenset[str], frozenset[str]]:
    """Return the patterns of the users and of the groups that a policy excludes."""
    users, groups = bound.match.users, bound.match.groups
    return frozenset(users or ()), frozenset(groups or ())
