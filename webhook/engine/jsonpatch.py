"""Set fields of an object, and describe what was set as a minimal JSONPatch (RFC 6902)."""

from collections.abc import Iterable
from typing import Any

from kube.resource import FieldPath, PathElement
from webhook.engine.fields import WrongTypeError
from webhook.engine.request import Request
from webhook.engine.violation import UNSET, Patch, Record

CONTAINERS = (dict, list)
# Fields that were set, by the id of their object or list and the step in it. The values are that
# object or list, the step, the value before the first change, and a record with the steps below it.
Changes = dict[tuple[int, PathElement], tuple[Any, PathElement, Any, Record, FieldPath]]


def pointer(path: Iterable[PathElement]) -> str:
    """Return `path` as a JSON pointer (RFC 6901)."""
    return "".join([f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in path])


class Patcher:
    """Changes a request's object in place, and records the JSON patch operations."""

    def __init__(self, request: Request) -> None:
        """Start with no operations."""
        self._request = request
        self._changes: Changes = {}
        # Objects and lists that patches have added, by id.
        self._added: dict[int, Any] = {}

    def apply(self, patches: Iterable[Patch]) -> bool:
        """Apply all patches, or none if one of them raises; return whether anything changed.

        Raises WrongTypeError for a parent of a wrong type, LookupError for a missing list item.
        """
        changes: Changes = {}
        try:
            for patch in patches:
                self._apply(patch, changes)
        except (WrongTypeError, LookupError):
            for node, step, old, _, _ in changes.values():
                _put(node, step, old)
            raise
        if not changes:
            return False
        for slot, change in changes.items():
            self._changes.setdefault(slot, change)  # keep the original value
        self._request.forget()  # its cached records are outdated
        return True

    @property
    def operations(self) -> list[dict[str, Any]]:
        """The operations, one for each field that differs, in the order of the first change."""
        operations: list[dict[str, Any]] = []
        for node, step, old, holder, steps in self._changes.values():
            value = node.get(step, UNSET) if type(node) is dict else node[step]
            if id(node) in self._added or same(value, old):
                continue
            path = pointer((*holder.steps(), *steps))
            # In a list, "add" would insert an item.
            is_new = (old is None or old is UNSET) and type(node) is dict
            if value is UNSET:
                operations.append({"op": "remove", "path": path})
            else:
                operations.append(
                    {"op": "add" if is_new else "replace", "path": path, "value": value}
                )
        return operations

    def _apply(self, patch: Patch, changes: Changes) -> None:
        holder, steps = patch.holder, patch.path
        if holder is None:
            holder = self._request
        elif not holder.value:  # records of absent objects are empty
            holder, steps = self._request, patch.steps
        node: Any = holder.value
        for depth, step in enumerate(steps, 1):
            expected: Any = list if type(step) is int else dict
            if type(node) is not expected:
                path = ".".join(map(str, steps[: depth - 1]))
                raise WrongTypeError(holder.path(path), node, expected)
            old = node[step] if expected is list else node.get(step, UNSET)
            if depth == len(steps) or old is None or old is UNSET:
                break
            node = old
        value = patch.value
        is_absent = old is None or old is UNSET
        is_empty = value is UNSET or (value is None and not patch.overwrite)
        if same(old, value) or (is_empty if is_absent else not patch.overwrite):
            return
        if type(value) in CONTAINERS:
            value = self._own(value)
        for below in reversed(steps[depth:]):
            if type(below) is int:
                raise LookupError(f"no item {pointer(patch.steps)}")
            value = {below: value}
            self._added[id(value)] = value
        changes.setdefault((id(node), step), (node, step, old, holder, steps[:depth]))
        _put(node, step, value)

    def _own(self, value: Any) -> Any:
        """Return a copy of a policy's object or list, which later patches may change."""
        value = value.copy()
        for key, item in value.items() if type(value) is dict else enumerate(value):
            if type(item) in CONTAINERS:
                value[key] = self._own(item)
        self._added[id(value)] = value
        return value


def _put(node: Any, step: PathElement, value: Any) -> None:
    if value is UNSET:
        node.pop(step, None)
    else:
        node[step] = value


def same(one: Any, other: Any) -> bool:
    """Return whether two values are equal as JSON: in Python True == 1, in JSON they differ."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)
