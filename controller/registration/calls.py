"""Groups requests into as few webhooks as possible.

Each has a namespaceSelector and matchConditions in CEL.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import orjson

from controller.registration import scope
from controller.registration.demands import Demand, DemandKey
from controller.registration.scope import (
    NAME_LABEL,
    NamePatterns,
    NamespaceScope,
    Requirement,
    is_glob,
)
from kube.resource import JsonObject

# For one verb and failure policy. With more, their conditions are widened and joined, since the API
# server evaluates every webhook for each request.
MAX_WEBHOOKS = 8
SPECIAL = frozenset(r"\.+*?()|[]{}^$")


@dataclass(frozen=True, slots=True)
class WebhookCall:
    """The conditions of one webhook besides its rules: namespaces and excluded users.

    A webhook receives each resource in one set of versions: `version_set` is its number.
    """

    place: NamespaceScope
    users: frozenset[str]
    groups: frozenset[str]
    version_set: int = 0

    def order(self) -> tuple[object, ...]:
        """Return the sort key of webhooks: named namespaces first, all namespaces last."""
        named = sorted(self.users), sorted(self.groups)
        return *scope.order(self.place), *named, -self.version_set

    @property
    def namespace_selector(self) -> JsonObject:
        """The namespaceSelector: all conditions on labels, and on names without wildcards."""
        found = [
            (each.key, each.operator, each.values)
            for each in self.place
            if isinstance(each, Requirement)
        ]
        for each in self.place:
            if isinstance(each, NamePatterns) and (each.is_exact or not each.match):
                names = tuple(name for name in each.patterns if not is_glob(name))
                found += [(NAME_LABEL, "In" if each.match else "NotIn", names)] if names else []
        return {
            "matchExpressions": [
                {"key": key, "operator": operator} | ({"values": list(values)} if values else {})
                for key, operator, values in sorted(found)
            ]
        }

    @property
    def match_conditions(self) -> JsonObject:
        """The matchConditions: names with wildcards, and users that all policies exclude."""
        conditions = dict(self._conditions())
        if not conditions:
            return {}
        return {
            "matchConditions": [
                {"name": name, "expression": text} for name, text in conditions.items()
            ]
        }

    def _conditions(self) -> Iterator[tuple[str, str]]:
        for number, each in enumerate(
            sorted(each for each in self.place if isinstance(each, NamePatterns)), start=1
        ):
            patterns = [name for name in each.patterns if each.match or is_glob(name)]
            if patterns and not each.is_exact:
                # The request for a Namespace with a generated name has no namespace.
                matches = matching("request.namespace", patterns)
                yield (
                    f"namespaces-{number}",
                    f"!has(request.namespace) || {'' if each.match else '!'}({matches})",
                )
        if self.users:
            yield "users", f"!({matching('request.userInfo.username', self.users)})"
        if self.groups:
            groups = f"request.userInfo.groups.exists(group, {matching('group', self.groups)})"
            yield "groups", f"!(has(request.userInfo.groups) && {groups})"


def calls_for(
    demands: Mapping[DemandKey, Demand], excluded: NamePatterns
) -> dict[WebhookCall, list[DemandKey]]:
    """Return the webhooks to register and the targets of each.

    If these were more than eight, all targets share one set of namespaces; if that is still too
    many, the webhooks match all namespaces.
    """
    shared = Demand()
    for each in demands.values():
        shared.merge(each)
    everywhere = Demand({scope.EVERYWHERE}, shared.users, shared.groups)
    attempts = (demands, dict.fromkeys(demands, shared), dict.fromkeys(demands, everywhere))
    found = (_calls(each, excluded) for each in attempts)
    return next(calls for calls in found if calls is not None)


def _calls(
    demands: Mapping[DemandKey, Demand], excluded: NamePatterns
) -> dict[WebhookCall, list[DemandKey]] | None:
    """Return the webhooks without widening; None if they are too many."""
    found: dict[WebhookCall, list[DemandKey]] = {}
    version_sets: dict[tuple[str, str], list[tuple[str, ...]]] = {}
    for key, demand in demands.items():
        kind = key[0]
        several = version_sets.setdefault((kind.group, kind.plural), [])
        if kind.versions not in several:
            several.append(kind.versions)
        places = scope.disjoint(demand.places, MAX_WEBHOOKS)
        if places is None:
            return None
        for place in places:
            left = scope.simplified(place | {excluded})
            if left is not None:
                users, groups = demand.users or frozenset(), demand.groups or frozenset()
                call = WebhookCall(left, users, groups, several.index(kind.versions))
                found.setdefault(call, []).append(key)
    if len(found) > MAX_WEBHOOKS:
        return None
    return {call: found[call] for call in sorted(found, key=WebhookCall.order)}


def matching(variable: str, patterns: Iterable[str]) -> str:
    """Return the CEL expression for whether a text matches any glob of `*` and `?`."""
    exact = sorted(pattern for pattern in patterns if not is_glob(pattern))
    globs = sorted(filter(is_glob, patterns))
    parts = [f"{variable} in {_quoted(exact)}"] if exact else []
    if globs:
        parts.append(
            f"{variable}.matches({_quoted('^(' + '|'.join(map(regular_expression, globs)) + ')$')})"
        )
    return " || ".join(parts)


def regular_expression(pattern: str) -> str:
    """Return a pattern with `*` and `?` as an RE2 expression."""
    wild = {"*": ".*", "?": "."}
    return "".join(wild.get(each) or (f"\\{each}" if each in SPECIAL else each) for each in pattern)


def _quoted(value: str | list[str]) -> str:
    return orjson.dumps(value).decode()
