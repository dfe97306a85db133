"""Groups the platform's demands into at most MAX_WEBHOOKS webhooks, and widens the least."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import combinations

from controller.registration.demands import Demand, DemandKey
from controller.registration.scope import (
    EVERYWHERE,
    Fit,
    NamePatterns,
    NamespaceCondition,
    NamespaceScope,
    Slot,
    fit,
    is_glob,
    merge,
    slot_of,
)

# For one verb and failure policy, besides those of tenants. The API server looks at the rules and
# the selector of each webhook for each request, which takes it about a microsecond.
MAX_WEBHOOKS = 32
# Weights of conditions: about how many namespaces match.
EVERYTHING, NEGATIVE, LABEL, GLOB = 10_000.0, 5_000.0, 100.0, 20.0


@dataclass
class Group:
    """Targets that share their namespaces and excluded users."""

    keys: list[DemandKey]
    users: frozenset[str]
    groups: frozenset[str]
    merged: list[NamespaceScope]
    widened: bool = False
    fit: Fit = field(init=False)

    def __post_init__(self) -> None:
        """Compute its webhooks' scopes."""
        self.fit = fit(self.merged, MAX_WEBHOOKS)
        self.widened |= self.fit.widened

    @property
    def calls(self) -> set[tuple[NamespaceScope, frozenset[str], frozenset[str]]]:
        """The conditions of its webhooks."""
        return {(place, self.users, self.groups) for place in self.fit.scopes}


def group_demands(demands: Mapping[DemandKey, Demand]) -> list[Group]:
    """Return groups of targets that need at most MAX_WEBHOOKS webhooks together.

    As long as they need more, the two groups are merged whose union adds the fewest requests.
    """
    alike: dict[object, list[DemandKey]] = {}
    for key, demand in demands.items():
        identity = frozenset(demand.parts), demand.users, demand.groups
        alike.setdefault(identity, []).append(key)
    groups = [_group(keys, demands[keys[0]]) for keys in alike.values()]
    costs: dict[tuple[int, int], float] = {}
    while len(groups) > 1 and _count(groups) > MAX_WEBHOOKS:
        for one, other in combinations(groups, 2):
            if (id(one), id(other)) not in costs:
                costs[id(one), id(other)] = _count_added(one, other)
        one, other = min(combinations(groups, 2), key=lambda pair: costs[id(pair[0]), id(pair[1])])
        groups = [each for each in groups if each is not one and each is not other]
        groups.append(_union(one, other))
    return groups


def _group(keys: list[DemandKey], demand: Demand) -> Group:
    users, groups = demand.users or frozenset(), demand.groups or frozenset()
    return Group(keys, users, groups, merge(demand.places))


def _count(groups: Iterable[Group]) -> int:
    return len(set().union(*(each.calls for each in groups)))


def _union(one: Group, other: Group) -> Group:
    merged = merge([*one.merged, *other.merged])
    users, groups = one.users & other.users, one.groups & other.groups
    return Group([*one.keys, *other.keys], users, groups, merged, widened=True)


def _count_added(one: Group, other: Group) -> float:
    """Return about how many requests a union of two groups adds."""
    users = len(one.users ^ other.users) + len(one.groups ^ other.groups)
    return (
        len(one.keys) * _missing(other.merged, one.merged)
        + len(other.keys) * _missing(one.merged, other.merged)
        + users
    )


def _missing(places: Iterable[NamespaceScope], among: Iterable[NamespaceScope]) -> float:
    """Return about how many namespaces of some scopes others lack."""
    others = set(among)
    if EVERYWHERE in others:
        return 0.0
    single = {slot_of(each): each for place in others if len(place) == 1 for each in place}
    return sum((_breadth(place, single) for place in places if place not in others), 0.0)


def _breadth(place: NamespaceScope, single: Mapping[Slot, NamespaceCondition]) -> float:
    """Return about how many namespaces of a scope have none of the `single` conditions."""
    breadth = EVERYTHING
    for condition in place:
        values = set(_values_of(condition))
        if (same := single.get(slot_of(condition))) is not None:
            values -= set(_values_of(same))
        breadth = min(breadth, _width(condition, values))
    return breadth


def _values_of(condition: NamespaceCondition) -> tuple[str, ...]:
    return condition.patterns if isinstance(condition, NamePatterns) else condition.values


def _width(condition: NamespaceCondition, values: set[str]) -> float:
    if slot_of(condition)[1] in {"NotIn", "DoesNotExist"}:
        return NEGATIVE
    if isinstance(condition, NamePatterns):
        return sum(GLOB if is_glob(each) else 1 for each in values)
    return LABEL if condition.operator == "Exists" else GLOB * len(values)
