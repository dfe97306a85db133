"""Finds the policies for a request by one look-up, however many are loaded."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import NamedTuple

from webhook.engine.bound import BoundPolicy
from webhook.engine.kinds import NAMESPACES, Kind, Target, TargetKey
from webhook.engine.match import ALL_NAMES
from webhook.engine.ranks import LabelIndex, Rank, Ranked
from webhook.engine.request import (
    NAMESPACE,
    NAMESPACE_LABELS,
    Attributes,
)

Several = Mapping[str, tuple[Ranked, ...]]
MAX_PLACES = 4096  # cached pairs of target and namespace
MAX_COMPARED = 50  # changed policies that are compared with each cached place; more empty the cache


NO_VERSIONS: Mapping[Kind, Iterable[str]] = {}


class AlikeTargets:
    """Policies of the same targets, by name, by the text before a wildcard, or anywhere.

    Immutable; a change shares what stays.
    """

    def __init__(
        self,
        keys: tuple[tuple[TargetKey, Target], ...],
        anywhere: Mapping[Rank, BoundPolicy],
        by_name: Several,
        by_prefix: Several,
        needs: Counter[frozenset[str]],
    ) -> None:
        """Take the keys of the targets, and the policies; `needs` counts their look-ups."""
        self.keys = keys
        self.anywhere = anywhere
        self.needs = needs
        self._by_name = by_name
        self._by_prefix = by_prefix

    @classmethod
    def empty(cls, keys: tuple[tuple[TargetKey, Target], ...]) -> "AlikeTargets":
        """Return no policies of targets."""
        return cls(keys, {}, {}, {}, Counter())

    def __bool__(self) -> bool:
        return bool(self.needs)

    def with_changes(self, removed: Iterable[Ranked], added: Iterable[Ranked]) -> "AlikeTargets":
        """Return the policies without some, and with others."""
        gone, new = _Sorted(removed), _Sorted(added)
        anywhere = {**self.anywhere, **new.anywhere}
        for rank in gone.anywhere.keys() - new.anywhere.keys():
            del anywhere[rank]
        needs = self.needs.copy()
        needs.subtract(gone.needs)
        needs.update(new.needs)
        by_name = _replace(self._by_name, gone.by_name, new.by_name)
        by_prefix = _replace(self._by_prefix, gone.by_prefix, new.by_prefix)
        return AlikeTargets(self.keys, anywhere, by_name, by_prefix, +needs)

    def in_namespace(self, name: str) -> Iterator[Ranked]:
        """Yield the policies that apply by the name of a namespace, and perhaps some others."""
        yield from self._by_name.get(name, ())
        if self._by_prefix:
            alike = (self._by_prefix.get(name[:end], ()) for end in range(len(name) + 1))
            yield from {ranked[0]: ranked for several in alike for ranked in several}.values()


class _Sorted:
    """Policies by how they select namespaces."""

    def __init__(self, policies: Iterable[Ranked]) -> None:
        self.needs = Counter[frozenset[str]]()
        self.anywhere: dict[Rank, BoundPolicy] = {}
        self.by_name: dict[str, list[Ranked]] = {}
        self.by_prefix: dict[str, list[Ranked]] = {}
        for ranked in policies:
            rank, bound = ranked
            self.needs[bound.needs_anywhere] += 1
            exact, prefixes = bound.namespaces
            for name in exact or ():
                self.by_name.setdefault(name, []).append(ranked)
            for prefix in prefixes:
                self.by_prefix.setdefault(prefix, []).append(ranked)
            if bound.namespaces == ALL_NAMES:
                self.anywhere[rank] = bound


def _replace(
    index: Several, removed: Mapping[str, list[Ranked]], added: Mapping[str, list[Ranked]]
) -> Several:
    """Return an index with other policies under some keys."""
    if not removed and not added:
        return index
    changed = dict(index)
    for key in {**removed, **added}:
        gone = {rank for rank, _ in removed.get(key, ())}
        left = [each for each in changed.pop(key, ()) if each[0] not in gone]
        if several := (*left, *added.get(key, ())):
            changed[key] = several
    return changed


class TargetPolicies(NamedTuple):
    """The policies of one target in one namespace, and the look-ups that they need.

    `ranked` are those that may apply, `kind` is the judged kind (None without policies), and
    `rules` is the number of rules in tenants' policies.
    """

    ranked: LabelIndex
    kind: Kind | None
    needs: frozenset[str]
    rules: int


NO_POLICIES = TargetPolicies(LabelIndex([], {}, 0), None, frozenset(), 0)


class Narrowed(NamedTuple):
    """Policies with what a target and a namespace leave open; the number for each set of needs."""

    ranked: list[Ranked]
    needs: Counter[frozenset[str]]


class Everywhere(NamedTuple):
    """The policies of one target that ignore the names of namespaces.

    `needs` has the number of policies for each set of look-ups.
    """

    ranked: LabelIndex
    needs: Counter[frozenset[str]]


TargetPlace = tuple[
    str, str, str, str, str, str
]  # a target, a namespace, and the version that was sent


class Index:
    """Policies by target."""

    def __init__(
        self,
        ranked: Iterable[Ranked],
        versions_sent: Mapping[Kind, Iterable[str]] = NO_VERSIONS,
    ) -> None:
        """Index policies by ranks; leave out targets that no clause of a policy can select.

        With `versions_sent`, a policy does not judge requests in a version that is sent for other
        policies.
        """
        self._versions_of_others = _versions_of_others(versions_sent)
        self._groups: dict[int, AlikeTargets] = {}  # by the identity of the targets' keys
        self.targets: dict[TargetKey, Target] = {}
        self._group_ids: dict[TargetKey, list[int]] = {}
        self._everywhere: dict[tuple[TargetKey, str, bool], Everywhere] = {}
        self._policies_by_place: dict[TargetPlace, TargetPolicies] = {}
        self._replace((), tuple(ranked))

    def with_changes(self, removed: Sequence[Ranked], added: Sequence[Ranked]) -> "Index":
        """Return an index of other policies, in time of the changes; the rest is shared.

        The others keep their ranks.
        """
        other = copy(self)
        other._groups = dict(self._groups)
        # Copied at once: reviews add to them in another thread.
        other._everywhere = self._everywhere.copy()
        other._policies_by_place = self._policies_by_place.copy()
        other._replace(removed, added)
        return other

    def _replace(self, removed: Sequence[Ranked], added: Sequence[Ranked]) -> None:
        """Replace policies, and forget what was computed from them."""
        changes: dict[int, tuple[list[Ranked], list[Ranked]]] = {}
        for side, several in enumerate((removed, added)):
            for ranked in several:
                keys = ranked[1].keys
                if id(keys) not in self._groups:
                    self._groups[id(keys)] = AlikeTargets.empty(keys)
                changes.setdefault(id(keys), ([], []))[side].append(ranked)
        is_same = all(self._groups[number] for number in changes)
        for number, change in changes.items():
            self._groups[number] = self._groups[number].with_changes(*change)
            if not self._groups[number]:
                del self._groups[number]
                is_same = False
        if not is_same:
            self._index_targets()
        if is_same and len(removed) + len(added) <= MAX_COMPARED:
            self._update_caches(removed, added)
        else:
            self._everywhere, self._policies_by_place = {}, {}

    def _index_targets(self) -> None:
        """Find the targets of all groups, and the groups of each target."""
        self.targets, self._group_ids = {}, {}
        for number, group in self._groups.items():
            for key, target in group.keys:
                self.targets[key] = target
                self._group_ids.setdefault(key, []).append(number)

    def _update_caches(self, removed: Sequence[Ranked], added: Sequence[Ranked]) -> None:
        """Update policies that ignore names of namespaces; forget places that others affect."""
        by_key: dict[TargetKey, tuple[list[Ranked], list[Ranked]]] = {}
        for side, several in enumerate((removed, added)):
            for ranked in several:
                for key, _ in ranked[1].keys:
                    by_key.setdefault(key, ([], []))[side].append(ranked)
        for (key, version, is_in_namespace), before in list(self._everywhere.items()):
            if key in by_key:
                gone, new = (
                    self._narrow(key, "any" * is_in_namespace, version, _anywhere(several))
                    for several in by_key[key]
                )
                needs = before.needs.copy()
                needs.subtract(gone.needs)
                needs.update(new.needs)
                index = before.ranked.with_changes(gone.ranked, new.ranked)
                self._everywhere[key, version, is_in_namespace] = Everywhere(index, +needs)
        for place in list(self._policies_by_place):
            changed = by_key.get(place[:4])
            if changed and any(_may_apply(each, place[4]) for part in changed for _, each in part):
                del self._policies_by_place[place]

    def needs_of(self, key: TargetKey) -> frozenset[str]:
        """Return the look-ups that the policies of a target need, wherever they apply."""
        groups = (self._groups[number] for number in self._group_ids.get(key, ()))
        return frozenset[str]().union(*(each for group in groups for each in group.needs))

    def policies_for(self, attributes: Attributes) -> TargetPolicies:
        """Return the policies for a request, each with the undecided part of its match."""
        # A planned child was not sent.
        is_sent = self._versions_of_others and attributes.sent is not None
        version = attributes.sent.resource.version if is_sent else ""
        place = *attributes.target, attributes.namespace, version
        policies = self._policies_by_place.get(place)
        if policies is None:
            policies = self._in_place(place[:4], attributes.namespace, version)
            if len(self._policies_by_place) >= MAX_PLACES:
                self._policies_by_place.clear()
            self._policies_by_place[place] = policies
        return policies

    def _in_place(self, key: TargetKey, namespace: str, version: str) -> TargetPolicies:
        """Return the policies for a target in a namespace.

        Those that apply by name, or by a glob, are added to those that ignore its name, which are
        the same for all namespaces.
        """
        groups = [self._groups[number] for number in self._group_ids.get(key, ())]
        if not groups:
            return NO_POLICIES
        everywhere = self._everywhere.get((key, version, bool(namespace)))
        if everywhere is None:
            anywhere = [each for group in groups for each in group.anywhere.items()]
            narrowed = self._narrow(key, namespace, version, anywhere)
            everywhere = Everywhere(LabelIndex.of(narrowed.ranked), narrowed.needs)
            self._everywhere[key, version, bool(namespace)] = everywhere
        named = [each for group in groups for each in group.in_namespace(namespace)]
        own = self._narrow(key, namespace, version, named)
        if not everywhere.needs and not own.needs:
            return NO_POLICIES
        needs = set[str]().union(*everywhere.needs, *own.needs)
        if key[:2] == NAMESPACES:
            needs -= {NAMESPACE_LABELS, NAMESPACE}
        # A tenant's policy is found by the name of its namespace.
        rules = sum(bound.rules for _, bound in own.ranked if bound.namespace is not None)
        ranked = everywhere.ranked.join(own.ranked)
        return TargetPolicies(ranked, self.targets[key].kind, frozenset(needs), rules)

    def _narrow(
        self, key: TargetKey, namespace: str, version: str, ranked: Sequence[Ranked]
    ) -> Narrowed:
        """Return policies with the part of their match that a target and a namespace leave open."""
        if not ranked:
            return Narrowed([], Counter())
        target = replace(self.targets[key], operations=(key[3],))
        left, needs = list[Ranked](), Counter[frozenset[str]]()
        for rank, bound in ranked:
            if bound.namespace is not None and bound.namespace != namespace:
                continue
            if version and version in self._versions_of_others.get(_kind_of(bound, key), ()):
                continue
            narrowed = bound.narrow(target, namespace)
            if narrowed is not None:
                left.append((rank, narrowed))
                needs[narrowed.match.needs(key[2]) | bound.needs] += 1
        return Narrowed(left, needs)


def _anywhere(ranked: Iterable[Ranked]) -> list[Ranked]:
    """Return the policies that ignore the names of namespaces."""
    return [(rank, bound) for rank, bound in ranked if bound.namespaces == ALL_NAMES]


def _may_apply(bound: BoundPolicy, namespace: str) -> bool:
    """Return whether a policy can apply in a namespace, by its name."""
    names = bound.namespaces.exact
    return namespace in names if names is not None else bound.match.may_select_in(namespace)


def _versions_of_others(sent: Mapping[Kind, Iterable[str]]) -> dict[Kind, set[str]]:
    """Return the versions in which each kind is sent for other policies only, if there are any."""
    everything: dict[tuple[str, str], set[str]] = defaultdict(set)
    for kind, versions in sent.items():
        everything[kind.group, kind.plural].update(versions)
    others = {
        kind: everything[kind.group, kind.plural].difference(versions)
        for kind, versions in sent.items()
    }
    return {kind: versions for kind, versions in others.items() if versions}


def _kind_of(bound: BoundPolicy, key: TargetKey) -> Kind:
    """Return the kind of a target as a policy names it."""
    return next(target.kind for target in bound.targets if key in target.keys)
