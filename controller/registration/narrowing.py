"""Conditions on targets of one webhook that are sent from some of its namespaces only."""

from collections.abc import Mapping
from typing import NamedTuple

import orjson

from controller.registration.demands import DemandKey

# Of one webhook; the API server allows 64 conditions, and 100,000 characters in each expression.
MAX_CONDITIONS = 60
MAX_CONDITION_TEXT = 50_000
MAX_CONDITIONS_TEXT = 200_000
TARGET = (
    'request.resource.group + "/" + request.resource.resource + '
    '(has(request.subResource) ? "/" + request.subResource : "") + ":" + request.operation'
)


class Narrowing(NamedTuple):
    """Targets that are sent from these namespaces only, or from all others."""

    targets: tuple[str, ...]
    names: tuple[str, ...]
    match: bool

    @property
    def expression(self) -> str:
        """The condition in CEL (matchConditions of admissionregistration.k8s.io/v1)."""
        targets, names = (orjson.dumps(each).decode() for each in (self.targets, self.names))
        is_in = f"request.namespace in {names}"
        is_sent = is_in if self.match else f"!({is_in})"
        return f"!has(request.namespace) || !(({TARGET}) in {targets}) || {is_sent}"


def narrowings(
    namespaces: Mapping[DemandKey, frozenset[str]],
) -> tuple[tuple[Narrowing, ...], frozenset[DemandKey]]:
    """Return the conditions for targets with fewer namespaces than their webhook.

    Also return the targets of conditions beyond the limits: these are sent from all namespaces of
    the webhook. The longest conditions are left out first.
    """
    everywhere = frozenset[str]().union(*namespaces.values())
    alike: dict[frozenset[str], list[DemandKey]] = {}
    for key, names in namespaces.items():
        if names != everywhere:
            alike.setdefault(names, []).append(key)
    conditions: list[Narrowing] = []
    dropped: list[DemandKey] = []
    text = 0
    for condition, keys in sorted(
        ((_narrowing(keys, names, everywhere), keys) for names, keys in alike.items()),
        key=lambda each: (len(each[0].expression), each[0]),
    ):
        size = len(condition.expression)
        if (
            len(conditions) < MAX_CONDITIONS
            and size <= MAX_CONDITION_TEXT
            and text + size <= MAX_CONDITIONS_TEXT
        ):
            conditions.append(condition)
            text += size
        else:
            dropped += keys
    return tuple(conditions), frozenset(dropped)


def _narrowing(
    keys: list[DemandKey], names: frozenset[str], everywhere: frozenset[str]
) -> Narrowing:
    others = everywhere - names
    targets = tuple(sorted(map(_target, keys)))
    if len(others) < len(names):
        return Narrowing(targets, tuple(sorted(others)), match=False)
    return Narrowing(targets, tuple(sorted(names)), match=True)


def _target(key: DemandKey) -> str:
    """Return a target as the expression TARGET has it."""
    kind, subresource, operation = key
    resource = f"{kind.plural}/{subresource}" if subresource else kind.plural
    return f"{kind.group}/{resource}:{operation}"
