"""The webhooks of all tenants' policies: their namespaces by name, and no users.

They take the requests that the platform's webhooks leave out, so a tenant's policy changes nothing
about requests in other namespaces.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from controller.registration.demands import DemandKey
from controller.registration.grouping import Group
from controller.registration.scope import NamePatterns, NamespaceScope, subtract

# Scopes that remain of the tenants' namespaces without those of the platform.
MAX_REMAINDERS = 4


@dataclass(frozen=True, slots=True)
class TenantsCall:
    """One webhook: a scope with the names of namespaces, and the namespaces of each target.

    A target's namespaces are some of the names in the scope, or all of them.
    """

    place: NamespaceScope
    namespaces: dict[DemandKey, frozenset[str]] = field(hash=False)


@dataclass(frozen=True, slots=True)
class TenantsShare:
    """The webhooks of tenants, and what they take from the platform's webhooks.

    Requests of the targets `taken` in the namespaces `names` are sent to the tenants' webhooks
    alone: the platform's webhooks leave out users there, or need too many conditions.
    """

    calls: tuple[TenantsCall, ...] = ()
    taken: frozenset[DemandKey] = frozenset()
    names: tuple[str, ...] = ()


def share_of_tenants(
    tenants: Mapping[DemandKey, Iterable[str]], platform: Iterable[Group], excluded: NamePatterns
) -> TenantsShare:
    """Return the webhooks for the namespaces of tenants, beside those of the platform."""
    own = {key: frozenset(names) - set(excluded.patterns) for key, names in tenants.items()}
    own = {key: names for key, names in own.items() if names}
    groups = {key: group for group in platform for key in group.keys}
    everyone = _name(name for names in own.values() for name in names)
    taken: dict[DemandKey, frozenset[str]] = {}
    remainders: dict[tuple[NamespaceScope, ...], list[NamespaceScope] | None] = {}
    shares: dict[NamespaceScope, dict[DemandKey, frozenset[str]]] = {}
    for key, names in own.items():
        group = groups.get(key)
        scopes = () if group is None else group.fit.scopes
        if scopes not in remainders:
            remainders[scopes] = subtract([everyone], scopes, MAX_REMAINDERS)
        rest = remainders[scopes]
        leaves_out_users = group is not None and (group.users or group.groups)
        if rest is None or (leaves_out_users and rest != [everyone]):
            taken[key] = names
            continue
        for place in rest:
            if left := names & _names_in(place):
                shares.setdefault(place, {})[key] = left
    calls = [_call(place, namespaces) for place, namespaces in shares.items()]
    names = frozenset[str]().union(*taken.values())
    if taken:
        # The platform may judge a target in all of these, so it is sent from all of them.
        calls.append(_call(_name(names), dict.fromkeys(taken, names)))
    return TenantsShare(tuple(calls), frozenset(taken), tuple(sorted(names)))


def _call(place: NamespaceScope, namespaces: dict[DemandKey, frozenset[str]]) -> TenantsCall:
    """Return a webhook without names of which it has no target."""
    names = _name(name for several in namespaces.values() for name in several)
    labels = {each for each in place if not isinstance(each, NamePatterns)}
    return TenantsCall(names | labels, namespaces)


def _name(names: Iterable[str]) -> NamespaceScope:
    return frozenset({NamePatterns(tuple(sorted(set(names))))})


def _names_in(place: NamespaceScope) -> frozenset[str]:
    return frozenset(
        name
        for requirement in place
        if isinstance(requirement, NamePatterns)
        for name in requirement.patterns
    )
