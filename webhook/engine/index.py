"""Finds the policies for a request by one look-up, however many are loaded."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from webhook.engine.bound import BoundPolicy
from webhook.engine.kinds import NAMESPACES, Kind, Target, TargetKey
from webhook.engine.label_index import LabelIndex, Ranked
from webhook.engine.request import NAMESPACE, NAMESPACE_LABELS, Attributes

MAX_PLACES = 4096  # cached pairs of target and namespace


NO_VERSIONS: Mapping[Kind, Iterable[str]] = {}


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


class AlikeTargets:
    """Policies of the same targets, by the names of the namespaces in which they can apply."""

    def __init__(self) -> None:
        """Begin without any."""
        self.anywhere: list[Ranked] = []
        self.by_name: dict[str, list[Ranked]] = {}
        self.by_glob: list[Ranked] = []
        self.needs = frozenset[str]()

    def add(self, rank: int, bound: BoundPolicy) -> None:
        """Add a policy; `rank` is its place in the order of all policies."""
        self.needs |= bound.needs_anywhere
        names = bound.names_of_namespaces
        if names is not None:
            for name in names:
                self.by_name.setdefault(name, []).append((rank, bound))
        elif bound.match.ignores_names_of_namespaces:
            self.anywhere.append((rank, bound))
        else:
            self.by_glob.append((rank, bound))

    def in_namespace(self, name: str) -> list[Ranked]:
        """Return the policies that apply by the name of a namespace, and perhaps some others."""
        return [*self.by_name.get(name, ()), *self.by_glob]


class Index:
    """Policies by target: first those of the cluster, then those of the request's namespace."""

    def __init__(
        self,
        policies: Iterable[BoundPolicy],
        versions_sent: Mapping[Kind, Iterable[str]] = NO_VERSIONS,
    ) -> None:
        """Index the policies; leave out targets that no clause of a policy can select.

        With `versions_sent`, a policy does not judge requests in a version that is sent for other
        policies.
        """
        self.targets: dict[TargetKey, Target] = {}
        self._alike: dict[TargetKey, list[AlikeTargets]] = {}
        self._anywhere: dict[tuple[TargetKey, str, bool], TargetPolicies] = {}
        self._policies_by_place: dict[tuple[str, str, str, str, str, str], TargetPolicies] = {}
        self._versions_of_others = _versions_of_others(versions_sent)
        alike: dict[int, AlikeTargets] = {}
        ordered = sorted(policies, key=lambda each: each.namespace is not None)
        for rank, bound in enumerate(ordered):
            keys = bound.keys
            group = alike.get(id(keys))
            if group is None:
                group = alike[id(keys)] = AlikeTargets()
                for key, target in keys:
                    self.targets[key] = target
                    self._alike.setdefault(key, []).append(group)
            group.add(rank, bound)

    def needs_of(self, key: TargetKey) -> frozenset[str]:
        """Return the look-ups that the policies of a target need, wherever they apply."""
        return frozenset[str]().union(*(each.needs for each in self._alike.get(key, ())))

    def policies_for(self, attributes: Attributes) -> TargetPolicies:
        """Return the policies for a request, each with the undecided part of its match."""
        # A planned child was not sent.
        is_sent = self._versions_of_others and attributes.sent is not None
        version = attributes.sent.resource.version if is_sent else ""
        place = *attributes.target, attributes.namespace, version
        found = self._policies_by_place.get(place)
        if found is None:
            found = self._in_place(attributes, version)
            if len(self._policies_by_place) >= MAX_PLACES:
                self._policies_by_place.clear()
            self._policies_by_place[place] = found
        return found

    def _in_place(self, attributes: Attributes, version: str) -> TargetPolicies:
        """Return the policies for a target in a namespace.

        Those that apply by name, or by a glob, are added to those that ignore its name, which are
        the same for all namespaces.
        """
        key, namespace = attributes.target, attributes.namespace
        groups = self._alike.get(key)
        if groups is None:
            return NO_POLICIES
        everywhere = self._anywhere.get((key, version, bool(namespace)))
        if everywhere is None:
            ranked = [each for group in groups for each in group.anywhere]
            narrowed = self._narrowed(attributes, version, ranked)
            everywhere = self._with_needs(key, LabelIndex.of(narrowed), narrowed)
            self._anywhere[key, version, bool(namespace)] = everywhere
        ranked = [each for group in groups for each in group.in_namespace(namespace)]
        own = self._narrowed(attributes, version, ranked)
        return self._with_needs(key, everywhere.ranked.joined(own), own, everywhere)

    def _narrowed(
        self, attributes: Attributes, version: str, ranked: Iterable[Ranked]
    ) -> list[Ranked]:
        """Return policies with the part of their match that a target and a namespace leave open."""
        key, namespace = attributes.target, attributes.namespace
        target = replace(self.targets[key], operations=(attributes.operation,))
        found: list[Ranked] = []
        for rank, bound in ranked:
            if bound.namespace is not None and bound.namespace != namespace:
                continue
            if version and version in self._versions_of_others.get(_kind_of(bound, key), ()):
                continue
            narrowed = bound.narrowed(target, namespace)
            if narrowed is not None:
                found.append((rank, narrowed))
        return found

    def _with_needs(
        self,
        key: TargetKey,
        ranked: LabelIndex,
        added: Iterable[Ranked],
        before: TargetPolicies | None = None,
    ) -> TargetPolicies:
        """Return policies with their look-ups, those of `before` and of the added ones."""
        needs = set[str]() if before is None else set(before.needs)
        rules = 0 if before is None else before.rules
        for _, bound in added:
            needs |= bound.match.needs(key[2]) | bound.needs
            rules += bound.rules if bound.namespace is not None else 0
        if key[:2] == NAMESPACES:
            needs -= {NAMESPACE_LABELS, NAMESPACE}
        kind = self.targets[key].kind if ranked else None
        return TargetPolicies(ranked, kind, frozenset(needs), rules)


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
