"""Finds the policies for a request by one look-up, however many are loaded."""

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from webhook.engine.bound import BoundPolicy
from webhook.engine.kinds import NAMESPACES, Kind, Target, TargetKey
from webhook.engine.request import NAMESPACE, NAMESPACE_LABELS, Attributes

MAX_PLACES = 4096  # cached pairs of target and namespace


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

    def __init__(self, policies: Iterable[BoundPolicy]) -> None:
        """Index the policies; leave out targets that no clause of a policy can select."""
        self.targets: dict[TargetKey, Target] = {}
        self.all: dict[TargetKey, list[BoundPolicy]] = {}
        self._policies_by_place: dict[tuple[str, str, str, str, str], TargetPolicies] = {}
        for bound in sorted(policies, key=lambda each: each.namespace is not None):
            for target in bound.policy.targets:
                # A tenant's policy does not judge the Namespace itself.
                is_its_own = bound.namespace is None or target.kind.namespaced
                for key in target.keys if is_its_own and bound.match.can_select(target) else ():
                    self.targets[key] = target
                    self.all.setdefault(key, []).append(bound)

    def policies_for(self, attributes: Attributes) -> TargetPolicies:
        """Return the policies for a request, each with the undecided part of its match."""
        place = *attributes.target, attributes.namespace
        found = self._policies_by_place.get(place)
        if found is None:
            found = self._narrowed(attributes)
            if len(self._policies_by_place) >= MAX_PLACES:
                self._policies_by_place.clear()
            self._policies_by_place[place] = found
        return found

    def _narrowed(self, attributes: Attributes) -> TargetPolicies:
        key, namespace = attributes.target, attributes.namespace
        policies: list[BoundPolicy] = []
        needs: set[str] = set()
        for bound in self.all.get(key, ()):
            if bound.namespace is not None and bound.namespace != namespace:
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
