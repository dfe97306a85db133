"""Finds mutating policies that would set one field to different values."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from config.field_paths import entry
from kube.resource import JsonObject
from webhook.engine.bound import BoundPolicy, outcomes_of
from webhook.engine.jsonpatch import Patcher
from webhook.engine.kinds import Kind
from webhook.engine.policy import judge_each_pod
from webhook.engine.request import Attributes, Request
from webhook.engine.violation import MAX_SHOWN, UNSET, Patch, steps_of

# The look-up of the policies in force, which a review of a policy object is judged with.
IN_FORCE = "policies_in_force"
CONTAINER = {"name": "container", "image": "image"}
LABELS = {"app": "app"}
EVERYWHERE = ""  # the place of a policy without clauses
SHOWN_KINDS = 3  # in a message

Leaves = Mapping[str, Any]  # values by path; items of a list are named if all of them have names


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
    `matchConditions`, is no conflict.
    """
    kept, conflicts, mutations = list[BoundPolicy](), list[PolicyConflict](), _Mutations()
    for policy in policies:
        if lines := mutations.add(policy):
            conflicts.append(PolicyConflict(policy, "\n".join(lines)))
        else:
            kept.append(policy)
    return tuple(kept), tuple(conflicts)


def refuse_conflict(policy: BoundPolicy, others: Iterable[BoundPolicy]) -> None:
    """Raise ConflictingPoliciesError if a policy conflicts with others, which may contain it."""
    mutations = _Mutations()
    for other in others:
        if other is not policy and other.match.shares_place_with(policy.match):
            mutations.add(other)
    if lines := mutations.add(policy):
        raise ConflictingPoliciesError("\n".join(lines))


class _Mutations:
    """What policies set in the smallest object of each kind, by field, place and value.

    Policies that set the same value need no comparison: the work is linear in the policies.
    """

    def __init__(self) -> None:
        self._set_by: dict[tuple[str, ...], dict[str, dict[bytes, list[BoundPolicy]]]] = {}

    def add(self, policy: BoundPolicy) -> Collection[str]:
        """Add a policy, or return a line for each conflict with an earlier one."""
        if policy.policy.mutate is None or policy.condition is not None:
            return ()
        places = _places(policy)
        # A key has group, resource, subresource and operation.
        found = [
            ((*key, path), _comparable(value), target.kind)
            for target in policy.policy.targets
            if not target.subresource and policy.match.can_select(target)
            for path, value in set_by(policy, target.kind).items()
            for key in target.keys
        ]
        conflicts: dict[str, dict[str, None]] = {}
        for key, value, kind in found:
            for earlier in self._others(key, places, value):
                for line in _compare(earlier, policy, kind, key[-1]):
                    conflicts.setdefault(line, {})[kind.kind] = None
        if not conflicts:
            for key, value, _ in found:
                for place in places:
                    by_value = self._set_by.setdefault(key, {}).setdefault(place, {})
                    by_value.setdefault(value, []).append(policy)
        return [line.format(kinds=_kinds(kinds)) for line, kinds in conflicts.items()]

    def _others(
        self, key: tuple[str, ...], places: Sequence[str], value: bytes
    ) -> Iterable[BoundPolicy]:
        """Return the policies that set a field to another value in one of the places."""
        by_place = self._set_by.get(key, {})
        shared = by_place if EVERYWHERE in places else (EVERYWHERE, *places)
        return {
            id(policy): policy
            for place in shared
            for other, policies in by_place.get(place, {}).items()
            if other != value
            for policy in policies
        }.values()


def _places(policy: BoundPolicy) -> Sequence[str]:
    """Return where a policy is in force: everywhere, or its clauses as text."""
    if not policy.match.clauses:
        return (EVERYWHERE,)
    return tuple(clause.model_dump_json() for clause in policy.match.written)


def _kinds(kinds: Collection[str]) -> str:
    """Return the names of kinds for a message: at most three."""
    named, more = list(kinds)[:SHOWN_KINDS], len(kinds) - SHOWN_KINDS
    if more > 0:
        return f"{', '.join(named)} and {more} more kinds:"
    return " and ".join(filter(None, (", ".join(named[:-1]), named[-1])))


def set_by(policy: BoundPolicy, kind: Kind, *, labelled: bool = False) -> Leaves:
    """Return what a policy sets in the smallest object of a kind, until it fails, if it does.

    With `labelled`, the object and its pods have labels and annotations: a JSON Patch adds to them.
    """
    before, after = (_leaves_after(each, kind, labelled=labelled) for each in ([], [policy]))
    return {
        path: after.get(path, UNSET)
        for path in {**before, **after}
        if not _is_same(before.get(path, UNSET), after.get(path, UNSET))
    }


def _compare(earlier: BoundPolicy, policy: BoundPolicy, kind: Kind, path: str) -> Iterator[str]:
    """Yield a line if the order of two policies decides the value at a path."""
    last = _leaves_after([earlier, policy], kind).get(path, UNSET)
    first = _leaves_after([policy, earlier], kind).get(path, UNSET)
    if not _is_same(first, last):
        values = " and ".join(_text(set_by(each, kind).get(path)) for each in (earlier, policy))
        text = f" {path} to different values: {values}".replace("{", "{{").replace("}", "}}")
        both = f"{earlier.title} and {policy.title}"
        yield f"{both} set {{kinds}}{text}"


def _leaves_after(policies: Sequence[BoundPolicy], kind: Kind, *, labelled: bool = False) -> Leaves:
    """Return the leaves of the smallest object of a kind after policies have mutated it in turn."""
    judged = kind.group, kind.versions[-1], kind.kind
    attributes = Attributes("", "CREATE", *judged, kind.group, kind.plural, namespace="namespace")
    object: JsonObject = {"metadata": {}}
    request = Request(attributes, object, kind=kind)
    patcher = Patcher(request)
    for path in kind.pod_specs or filter(None, (kind.pod_spec,)):
        patcher.apply([_add_pod(path)])
    if labelled:
        for path in filter(None, ("metadata", kind.pod_metadata)):
            patcher.apply(
                [Patch(steps_of(path), {"labels": {**LABELS}, "annotations": {**LABELS}})]
            )

    def mutate(bound: BoundPolicy) -> None:
        patches = list[Patch]()
        several = bool(kind.pod_specs) and not bound.evaluates
        policy = judge_each_pod(bound.policy) if several else bound.policy
        assert policy.mutate is not None
        try:
            patches.extend(policy.mutate(request, bound.params))
        finally:
            patcher.apply(patches)

    outcomes_of(policies, mutate)
    return dict(_leaves(object, ""))


def _add_pod(path: str) -> Patch:
    """Return a patch that adds a pod at a path, as the only item of each list in it."""
    first, *lists = path.split("[].")
    value: Any = {"containers": [CONTAINER]}
    for below in reversed(lists):
        for step in reversed(steps_of(below)):
            value = {step: value}
        value = [value]
    return Patch(steps_of(first), value)


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield path and value of each scalar, and of each list of items without names."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _leaves(item, entry(path, name) if path else name)
    elif isinstance(value, list) and all(map(_has_name, value)):
        for item in value:
            yield from _leaves(item, f"{path}[name={item['name']}]")
    else:
        yield path, value


def _has_name(item: Any) -> bool:
    return isinstance(item, dict) and "name" in item


def _is_same(one: Any, other: Any) -> bool:
    return _comparable(one) == _comparable(other)


def _comparable(value: Any) -> bytes:
    """Return a value as text that is the same for equal values; lists, in any order."""
    if value is UNSET:
        return b""
    if isinstance(value, list):
        return b"\n".join((b"[", *sorted(map(_json, value))))
    return _json(value)


def _text(value: Any) -> str:
    if value is UNSET:
        return "nothing"
    text = _json(value).decode()
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"


def _json(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
