"""Objects that mutating policies are tried on, and what the policies set and remove in them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeGuard

import orjson

from config.field_paths import entry
from kube.resource import JsonObject
from webhook.engine.bound import BoundPolicy, outcomes_of
from webhook.engine.jsonpatch import Patcher
from webhook.engine.kinds import Kind
from webhook.engine.policy import judge_each_pod
from webhook.engine.request import Attributes, Request
from webhook.engine.violation import UNSET, Patch, steps_of

CONTAINER = {"name": "container", "image": "image"}
LABELS = {"app": "app"}
# A key of each map, and the name of an item of each list, that policies do not mean: what replaces
# or removes the whole map or list removes it. Valid as a quantity, a label's value and a name.
MARK = "1"
MAX_LEAVES = 100  # of the object with the fields of all policies, on which each of them is tried

Leaves = Mapping[str, Any]  # values by path; items of a list are named if all of them have names


class Removed(NamedTuple):
    """Paths of what a policy removes."""

    wholes: frozenset[str]  # maps, and lists of named items: it removes or replaces them
    leaves: frozenset[str]


NOTHING_REMOVED = Removed(frozenset(), frozenset())


class KindTrials:
    """Policies tried on the smallest object of a kind: each once alone, and once among the others.

    The second object has the fields that all of them set.
    """

    def __init__(self, kind: Kind, policies: Iterable[BoundPolicy]) -> None:
        """Try each policy alone."""
        self._kind = kind
        self._before = dict(_leaves(smallest_object(kind), ""))
        self._objects: dict[int, JsonObject] = {}  # after each policy, by its identity
        self._leaves: dict[int, Leaves] = {}
        self._filled: JsonObject = {}
        paths = set[str]()
        for policy in policies:
            object = self._objects[id(policy)] = _object_after([policy], kind)
            leaves = self._leaves[id(policy)] = dict(_leaves(object, ""))
            if len(paths) < MAX_LEAVES:
                _add_missing(self._filled, _copy(object))
                paths |= leaves.keys()

    def set_by(self, policy: BoundPolicy) -> Leaves:
        """Return what a policy sets in the smallest object, until it fails, if it does."""
        return _differences(self._before, self._leaves[id(policy)])

    def removed_by(self, policy: BoundPolicy) -> Removed:
        """Return what a policy removes from the object with the fields of all policies."""
        object = _copy(self._objects[id(policy)])
        _add_missing(object, _copy(self._filled))
        _mark(object)
        before = _copy(object)
        operations = _mutate(object, [policy], self._kind).operations
        if all(operation["op"] == "add" for operation in operations):
            return NOTHING_REMOVED
        return Removed(
            frozenset({*_marked_paths(before, "")}.difference(_marked_paths(object, ""))),
            frozenset(dict(_leaves(before, "")).keys() - dict(_leaves(object, "")).keys()),
        )


def set_by(policy: BoundPolicy, kind: Kind, *, labelled: bool = False) -> Leaves:
    """Return what a policy sets in the smallest object of a kind, until it fails, if it does.

    With `labelled`, the object and its pods have labels and annotations: a JSON Patch adds to them.
    """
    before = dict(_leaves(smallest_object(kind, labelled=labelled), ""))
    return _differences(before, leaves_after([policy], kind, labelled=labelled))


def leaves_after(policies: Sequence[BoundPolicy], kind: Kind, *, labelled: bool = False) -> Leaves:
    """Return the leaves of the smallest object of a kind after policies have mutated it in turn."""
    return dict(_leaves(_object_after(policies, kind, labelled=labelled), ""))


def _differences(before: Leaves, after: Leaves) -> Leaves:
    """Return the leaves that changed, with the values after."""
    return {
        path: after.get(path, UNSET)
        for path in {**before, **after}
        if not is_same(before.get(path, UNSET), after.get(path, UNSET))
    }


def is_same(one: Any, other: Any) -> bool:
    """Return whether two leaves are equal; lists, in any order."""
    return comparable(one) == comparable(other)


def comparable(value: Any) -> bytes:
    """Return a leaf as text that is the same for equal ones; of lists, in any order."""
    if value is UNSET:
        return b""
    if isinstance(value, list):
        return b"\n".join((b"[", *sorted(map(json_of, value))))
    return json_of(value)


def json_of(value: Any) -> bytes:
    """Return a value as JSON with sorted keys."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def _object_after(
    policies: Sequence[BoundPolicy], kind: Kind, *, labelled: bool = False
) -> JsonObject:
    """Return the smallest object of a kind after policies have mutated it in turn."""
    object = smallest_object(kind, labelled=labelled)
    _mutate(object, policies, kind)
    return object


def smallest_object(kind: Kind, *, labelled: bool = False) -> JsonObject:
    """Return the smallest object of a kind, with a pod where it has pods."""
    object: JsonObject = {"metadata": {}}
    patches = [_add_pod(path) for path in kind.pod_specs or filter(None, (kind.pod_spec,))]
    for path in filter(None, ("metadata", kind.pod_metadata)) if labelled else ():
        texts = {"labels": {**LABELS}, "annotations": {**LABELS}}
        patches.append(Patch(steps_of(path), texts))
    if patches:
        Patcher(_request(object, kind)).apply(patches)
    return object


def _mutate(object: JsonObject, policies: Sequence[BoundPolicy], kind: Kind) -> Patcher:
    """Mutate an object by policies in turn, and return what has the operations.

    What fails ends a policy, not the others.
    """
    request = _request(object, kind)
    patcher = Patcher(request)

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
    return patcher


def _request(object: JsonObject, kind: Kind) -> Request:
    judged = kind.group, kind.versions[-1], kind.kind
    attributes = Attributes("", "CREATE", *judged, kind.group, kind.plural, namespace="namespace")
    return Request(attributes, object, kind=kind)


def _add_pod(path: str) -> Patch:
    """Return a patch that adds a pod at a path, as the only item of each list in it."""
    first, *lists = path.split("[].")
    value: Any = {"containers": [CONTAINER]}
    for below in reversed(lists):
        for step in reversed(steps_of(below)):
            value = {step: value}
        value = [value]
    return Patch(steps_of(first), value)


def _add_missing(object: JsonObject, other: JsonObject) -> None:
    """Add the keys, and the named items of lists, that only the other object has."""
    for key, value in other.items():
        own = object.setdefault(key, value)
        if isinstance(own, dict) and isinstance(value, dict):
            _add_missing(own, value)
        elif _is_named(own) and _is_named(value):
            items = {item["name"]: item for item in own}
            for item in value:
                if item["name"] not in items:
                    own.append(item)
                else:
                    _add_missing(items[item["name"]], item)


def _mark(value: Any) -> None:
    """Add the mark to the maps, and to the lists of named items, below an object or a list."""
    below = list(value.values()) if isinstance(value, dict) else value
    for item in below:
        if isinstance(item, dict | list):
            _mark(item)
        if isinstance(item, dict):
            item.setdefault(MARK, MARK)
        elif item and _is_named(item):
            item.append({**_copy(item[0]), "name": MARK})


def _marked_paths(value: Any, path: str) -> Iterator[str]:
    """Yield the paths of the maps and lists with the mark, at and below a path."""
    if isinstance(value, dict):
        if MARK in value:
            yield path
        for name, item in value.items():
            yield from _marked_paths(item, entry(path, name) if path else name)
    elif _is_named(value):
        for item in value:
            if item["name"] == MARK:
                yield path
            yield from _marked_paths(item, f"{path}[name={item['name']}]")


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield path and value of each scalar, and of each list of items without names."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _leaves(item, entry(path, name) if path else name)
    elif _is_named(value):
        for item in value:
            yield from _leaves(item, f"{path}[name={item['name']}]")
    else:
        yield path, value


def _is_named(value: Any) -> TypeGuard[list[JsonObject]]:
    return isinstance(value, list) and all(
        isinstance(item, dict) and "name" in item for item in value
    )


def _copy(value: Any) -> Any:
    return orjson.loads(orjson.dumps(value))
