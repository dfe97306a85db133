"""The webhooks of one sort, each with a namespaceSelector and matchConditions in CEL.

Those of the platform come from `grouping`, and do not depend on tenants; those of tenants come from
`tenants`.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import orjson

from controller.registration import scope
from controller.registration.demands import NOBODY, DemandKey, Demands
from controller.registration.grouping import group_demands
from controller.registration.narrowing import Narrowing, narrowings
from controller.registration.scope import (
    NAME_LABEL,
    NamePatterns,
    NamespaceCondition,
    NamespaceScope,
    Requirement,
    is_glob,
)
from controller.registration.tenants import share_of_tenants
from kube.resource import JsonObject
from webhook.engine.kinds import Kind

# Of the names and conditions of one sort. The API server stores at most 1.5 MiB in an object, and
# two sorts share one.
MAX_BYTES = 512 * 1024
SPECIAL = frozenset(r"\.+*?()|[]{}^$")


@dataclass(frozen=True, slots=True)
class WebhookCall:
    """The conditions of one webhook besides its rules: namespaces and excluded users.

    A webhook receives each resource in one set of versions: `version_set` is its number. With
    `narrowing`, some targets are sent from a part of the namespaces.
    """

    place: NamespaceScope
    users: frozenset[str]
    groups: frozenset[str]
    version_set: int = 0
    narrowing: tuple[Narrowing, ...] = ()

    @property
    def size(self) -> int:
        """About how many bytes its names, labels and conditions have as JSON."""
        values = (
            requirement.patterns
            if isinstance(requirement, NamePatterns)
            else (requirement.key, *requirement.values)
            for requirement in self.place
        )
        texts = sum(len(text) + 3 for several in values for text in several)
        return texts + sum(len(each.expression) for each in self.narrowing)

    def order(self) -> tuple[object, ...]:
        """Return the sort key of webhooks: named namespaces first, all namespaces last."""
        named = sorted(self.users), sorted(self.groups)
        return *scope.order(self.place), *named, -self.version_set

    @property
    def namespace_selector(self) -> JsonObject:
        """The namespaceSelector: all conditions on labels, and on names without wildcards."""
        requirements = [
            (requirement.key, requirement.operator, requirement.values)
            for requirement in self.place
            if isinstance(requirement, Requirement)
        ]
        for requirement in self.place:
            if isinstance(requirement, NamePatterns) and (
                requirement.is_exact or not requirement.match
            ):
                names = tuple(name for name in requirement.patterns if not is_glob(name))
                requirements += (
                    [(NAME_LABEL, "In" if requirement.match else "NotIn", names)] if names else []
                )
        return {
            "matchExpressions": [
                {"key": key, "operator": operator} | ({"values": list(values)} if values else {})
                for key, operator, values in sorted(requirements)
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
        for number, selection in enumerate(
            sorted(each for each in self.place if isinstance(each, NamePatterns)), start=1
        ):
            patterns = [name for name in selection.patterns if selection.match or is_glob(name)]
            if patterns and not selection.is_exact:
                # The request for a Namespace with a generated name has no namespace.
                matches = matching("request.namespace", patterns)
                yield (
                    f"namespaces-{number}",
                    f"!has(request.namespace) || {'' if selection.match else '!'}({matches})",
                )
        if self.users:
            yield "users", f"!({matching('request.userInfo.username', self.users)})"
        if self.groups:
            groups = f"request.userInfo.groups.exists(group, {matching('group', self.groups)})"
            yield "groups", f"!(has(request.userInfo.groups) && {groups})"
        for number, narrowing in enumerate(self.narrowing, start=1):
            yield f"targets-{number}", narrowing.expression


@dataclass(frozen=True, slots=True)
class Calls:
    """The webhooks to register, the targets of each, and targets that are sent from more places.

    `widened` are the targets that no policy asks for in some of the namespaces of their webhook.
    """

    targets: dict[WebhookCall, list[DemandKey]]
    widened: frozenset[DemandKey] = frozenset()


def calls_for(demands: Demands, excluded: NamePatterns) -> Calls:
    """Return the webhooks for the demands of one sort."""
    groups = group_demands(demands.platform)
    tenants = share_of_tenants(demands.tenants, groups, excluded)
    numbers = _version_sets((*demands.platform, *demands.tenants))
    keys_of_calls: dict[WebhookCall, list[DemandKey]] = {}
    widened = {key for group in groups if group.widened for key in group.keys}
    taken = NamePatterns(tenants.names, match=False)
    for group in groups:
        for keys, left_out in (
            ([key for key in group.keys if key not in tenants.taken], {excluded}),
            ([key for key in group.keys if key in tenants.taken], {excluded, taken}),
        ):
            places = (scope.simplify(place | left_out) for place in group.fit.scopes if keys)
            for place in filter(None, places):
                for key in keys:
                    call = WebhookCall(place, group.users, group.groups, numbers[key[0]])
                    keys_of_calls.setdefault(call, []).append(key)
    for tenant_call in tenants.calls:
        for number in {numbers[key[0]] for key in tenant_call.namespaces}:
            namespaces = {
                key: names
                for key, names in tenant_call.namespaces.items()
                if numbers[key[0]] == number
            }
            narrowing, dropped = narrowings(namespaces)
            call = WebhookCall(tenant_call.place, NOBODY, NOBODY, number, narrowing)
            keys_of_calls.setdefault(call, []).extend(namespaces)
            widened |= dropped
    if sum(call.size for call in keys_of_calls) > MAX_BYTES:
        widened = {*demands.platform, *demands.tenants}
        everywhere = frozenset[NamespaceCondition]({excluded})
        keys_of_calls = {}
        for key in widened:
            call = WebhookCall(everywhere, NOBODY, NOBODY, numbers[key[0]])
            keys_of_calls.setdefault(call, []).append(key)
    ordered = {call: keys_of_calls[call] for call in sorted(keys_of_calls, key=WebhookCall.order)}
    return Calls(ordered, frozenset(widened))


def _version_sets(keys: Iterable[DemandKey]) -> dict[Kind, int]:
    """Return the number of each kind's set of versions, of those in which its objects are sent."""
    several: dict[tuple[str, str], set[tuple[str, ...]]] = {}
    kinds = {kind for kind, _, _ in keys}
    for kind in kinds:
        several.setdefault((kind.group, kind.plural), set()).add(kind.versions)
    ordered = {resource: sorted(sets) for resource, sets in several.items()}
    return {kind: ordered[kind.group, kind.plural].index(kind.versions) for kind in kinds}


def matching(variable: str, patterns: Iterable[str]) -> str:
    """Return the CEL expression for whether a text matches any glob of `*` and `?`."""
    exact = sorted(pattern for pattern in patterns if not is_glob(pattern))
    globs = sorted(filter(is_glob, patterns))
    parts = [f"{variable} in {_quote(exact)}"] if exact else []
    if globs:
        parts.append(
            f"{variable}.matches({_quote('^(' + '|'.join(map(regular_expression, globs)) + ')$')})"
        )
    return " || ".join(parts)


def regular_expression(pattern: str) -> str:
    """Return a pattern with `*` and `?` as an RE2 expression."""
    wild = {"*": ".*", "?": "."}
    return "".join(wild.get(each) or (f"\\{each}" if each in SPECIAL else each) for each in pattern)


def _quote(value: str | list[str]) -> str:
    return orjson.dumps(value).decode()
