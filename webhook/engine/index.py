"""Finds the policies for a request by one look-up, however many are loaded."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from webhook.engine.bound import BoundPolicy
from webhook.engine.kinds import NAMESPACES, Kind, Target, TargetKey
from webhook.engine.request import NAMESPACE, NAMESPACE_LABELS, Attributes

MAX_PLACES = 4096  # cached pairs of target and namespace


NO_VERSIONS: Mapping[Kind, Iterable[str]] = {}


class TargetPolicies(NamedTuple):
    """The policies of one target in one namespace, and the look-ups that they need.

    `policies` are those that may apply, `kind` is the judged kind, and `rules` is the number of
    rules in tenants' policies.
    """

    policies: tuple[BoundPolicy, ...]
    kind: Kind | None
    needs: frozenset[str]
    rules: int


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
        self.all: dict[TargetKey, list[BoundPolicy]] = {}
        self._policies_by_place: dict[tuple[str, str, str, str, str, str], TargetPolicies] = {}
        self._versions_of_others = _versions_of_others(versions_sent)
        for bound in sorted(policies, key=lambda each: each.namespace is not None):
            for target in bound.targets:
                # A tenant's policy does not judge the Namespace itself.
                is_its_own = bound.namespace is None or target.kind.namespaced
                for key in target.keys if is_its_own and bound.match.can_select(target) else ():
                    self.targets[key] = target
                    self.all.setdefault(key, []).append(bound)

    def policies_for(self, attributes: Attributes) -> TargetPolicies:
        """Return the policies for a request, each with the undecided part of its match."""
        # A planned child was not sent.
        is_sent = self._versions_of_others and attributes.sent is not None
        version = attributes.sent.resource.version if is_sent else ""
        place = *attributes.target, attributes.namespace, version
        found = self._policies_by_place.get(place)
        if found is None:
            found = self._narrowed(attributes, version)
            if len(self._policies_by_place) >= MAX_PLACES:
                self._policies_by_place.clear()
            self._policies_by_place[place] = found
        return found

    def _narrowed(self, attributes: Attributes, version: str) -> TargetPolicies:
        key, namespace = attributes.target, attributes.namespace
        policies: list[BoundPolicy] = []
        needs: set[str] = set()
        for bound in self.all.get(key, ()):
            if bound.namespace is not None and bound.namespace != namespace:
                continue
            if version and version in self._versions_of_others.get(_kind_of(bound, key), ()):
                continue
            target = replace(self.targets[key], operations=(attributes.operation,))
            match = bound.match.narrowed(target, namespace)
            if match is not None:
                policies.append(replace(bound, match=match))
                needs |= match.needs(attributes.subresource) | bound.needs
        if key[:2] == NAMESPACES:
            needs -= {NAMESPACE_LABELS, NAMESPACE}
        kind = self.targets[key].kind if policies else None
        rules = sum(bound.rules for bound in policies if bound.namespace is not None)
        return TargetPolicies(tuple(policies), kind, frozenset(needs), rules)


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
