"""Finds mutating policies that would set one field to different values."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from config.field_paths import paths_above
from webhook.engine.bound import BoundPolicy
from webhook.engine.kinds import Kind, Target
from webhook.engine.mutation_trials import (
    KindTrials,
    comparable,
    is_same,
    json_of,
    leaves_after,
    set_by,
)
from webhook.engine.violation import MAX_SHOWN, UNSET

# The look-up of the policies in force, which a review of a policy object is judged with.
IN_FORCE = "policies_in_force"
EVERYWHERE = ""  # the place of a policy without clauses
PART = b"part"  # the effect of a policy on a map or list in which it changes something
SHOWN_KINDS = 3  # in a message


class PolicyConflict(NamedTuple):
    """A policy that is not in force because of earlier ones: a line for each pair and field."""

    policy: BoundPolicy
    text: str


class ConflictingPoliciesError(ValueError):
    """A policy cannot come into force because of others: a line for each pair and field."""


def without_conflicts(
    policies: Iterable[BoundPolicy],
) -> tuple[tuple[BoundPolicy, ...], tuple[PolicyConflict, ...]]:
    """Return the policies without those that conflict with earlier ones, and these conflicts.

    Two policies conflict if the order in which they mutate the smallest object of a kind decides
    the value of a field or of a list item. They must be in the same place: one is in force
    everywhere, or they share a clause of their `match`; a possible overlap, such as by
    `matchConditions`, is no conflict. A policy that removes or replaces a whole map conflicts with
    one that sets a key of it, also if it does so only in objects that have the map.
    """
    policies = tuple(policies)
    kept, conflicts, mutations = list[BoundPolicy](), list[PolicyConflict](), _Mutations(policies)
    for policy in policies:
        if lines := mutations.add(policy):
            conflicts.append(PolicyConflict(policy, "\n".join(lines)))
        else:
            kept.append(policy)
    return tuple(kept), tuple(conflicts)


def refuse_conflict(policy: BoundPolicy, others: Iterable[BoundPolicy]) -> None:
    """Raise ConflictingPoliciesError if a policy conflicts with others, which may contain it."""
    near = [
        other
        for other in others
        if other is not policy and other.match.shares_place_with(policy.match)
    ]
    mutations = _Mutations([*near, policy])
    for other in near:
        mutations.add(other)
    if lines := mutations.add(policy):
        raise ConflictingPoliciesError("\n".join(lines))


class _Mutations:
    """What policies set and remove in the smallest object of each kind, by place and value.

    Only policies that can meet another one are tried. Those that set the same value need no
    comparison: the work is linear in the policies.
    """

    def __init__(self, policies: Collection[BoundPolicy]) -> None:
        """Take all the policies that may be added."""
        self._set_by: dict[tuple[str, ...], dict[str, dict[bytes, list[BoundPolicy]]]] = {}
        self._scopes = {id(policy): _scope(policy) for policy in policies}
        self._policies: dict[Kind, dict[int, BoundPolicy]] = {}
        self._ids: dict[tuple[str, str], dict[str, set[int]]] = {}  # by group and plural, by place
        self._trials: dict[Kind, KindTrials] = {}
        for policy in policies:
            places, targets = self._scopes[id(policy)]
            for kind in [target.kind for target in targets]:
                self._policies.setdefault(kind, {})[id(policy)] = policy
                by_place = self._ids.setdefault((kind.group, kind.plural), {})
                for place in places:
                    by_place.setdefault(place, set()).add(id(policy))

    def add(self, policy: BoundPolicy) -> Collection[str]:
        """Add a policy, or return a line for each conflict with an earlier one."""
        places, targets = self._scopes[id(policy)]
        # A key has group, resource, subresource and operation.
        effects = [
            ((*key, path), effect, target.kind)
            for target in targets
            if self._meets_another(policy, target.kind)
            for path, effect in self._effects(policy, target.kind)
            for key in target.keys
        ]
        conflicts: dict[str, dict[str, None]] = {}
        for key, effect, kind in effects:
            for earlier in self._others(key, places, effect):
                for line in _compare(earlier, policy, kind, key[-1]):
                    conflicts.setdefault(line, {})[kind.kind] = None
        if not conflicts:
            for key, effect, _ in effects:
                for place in places:
                    by_effect = self._set_by.setdefault(key, {}).setdefault(place, {})
                    by_effect.setdefault(effect, []).append(policy)
        return [line.format(kinds=_kinds(kinds)) for line, kinds in conflicts.items()]

    def _effects(self, policy: BoundPolicy, kind: Kind) -> Iterator[tuple[str, bytes]]:
        """Yield the paths that a policy changes in a kind; the effect differs if it may conflict.

        The effect on a field is its value. The effect on a map or list is that of all policies that
        set parts of it, but that of one alone that removes or replaces it.
        """
        if kind not in self._trials:
            self._trials[kind] = KindTrials(kind, self._policies[kind].values())
        leaves = self._trials[kind].set_by(policy)
        removed = self._trials[kind].removed_by(policy)
        changed = {path: comparable(value) for path, value in leaves.items()}
        changed.update(dict.fromkeys(sorted(removed.leaves - leaves.keys()), comparable(UNSET)))
        parts = {above for path in {*changed, *removed.wholes} for above in paths_above(path)}
        yield from changed.items()
        yield from ((path, PART) for path in sorted(parts - removed.wholes))
        yield from ((path, str(id(policy)).encode()) for path in sorted(removed.wholes))

    def _meets_another(self, policy: BoundPolicy, kind: Kind) -> bool:
        """Return whether another policy mutates the kind in a place of this one."""
        by_place, alone = self._ids[kind.group, kind.plural], {id(policy)}
        places = _shared_places(self._scopes[id(policy)].places, by_place)
        return any(by_place.get(place, alone) != alone for place in places)

    def _others(
        self, key: tuple[str, ...], places: Sequence[str], effect: bytes
    ) -> Iterable[BoundPolicy]:
        """Return the policies with another effect on a path in one of the places."""
        by_place = self._set_by.get(key, {})
        return {
            id(policy): policy
            for place in _shared_places(places, by_place)
            for other, policies in by_place.get(place, {}).items()
            if other != effect
            for policy in policies
        }.values()


class _Scope(NamedTuple):
    """Where a policy is in force: everywhere, or its clauses as text; and what it mutates there."""

    places: Sequence[str]
    targets: Sequence[Target]


def _scope(policy: BoundPolicy) -> _Scope:
    """Return what a policy always mutates: policies with conditions may exclude each other."""
    targets: Sequence[Target] = ()
    if policy.policy.mutate is not None and policy.condition is None:
        whole = [target for target in policy.targets if not target.subresource]
        targets = policy.match.select_targets(whole)
    if not policy.match.clauses:
        return _Scope((EVERYWHERE,), targets)
    return _Scope([clause.model_dump_json() for clause in policy.match.written], targets)


def _shared_places(places: Sequence[str], of_others: Iterable[str]) -> Iterable[str]:
    """Return the places of others in which a policy with these places can meet them."""
    return of_others if EVERYWHERE in places else (EVERYWHERE, *places)


def _kinds(kinds: Collection[str]) -> str:
    """Return the names of kinds for a message: at most three."""
    named, more = list(kinds)[:SHOWN_KINDS], len(kinds) - SHOWN_KINDS
    if more > 0:
        return f"{', '.join(named)} and {more} more kinds:"
    return " and ".join(filter(None, (", ".join(named[:-1]), named[-1])))


def _compare(earlier: BoundPolicy, policy: BoundPolicy, kind: Kind, path: str) -> Iterator[str]:
    """Yield a line for each value at or below a path that the order of two policies decides."""
    last, first = (leaves_after(pair, kind) for pair in ([earlier, policy], [policy, earlier]))
    for leaf in {**last, **first}:
        if path not in (leaf, *paths_above(leaf)):
            continue
        if not is_same(first.get(leaf, UNSET), last.get(leaf, UNSET)):
            values = " and ".join(
                _text(set_by(setter, kind).get(leaf, UNSET)) for setter in (earlier, policy)
            )
            text = f" {leaf} to different values: {values}".replace("{", "{{").replace("}", "}}")
            both = f"{earlier.title} and {policy.title}"
            yield f"{both} set {{kinds}}{text}"


def _text(value: Any) -> str:
    if value is UNSET:
        return "nothing"
    text = json_of(value).decode()
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"
