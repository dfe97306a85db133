"""Set fields of an object, and describe what was set as a minimal JSONPatch (RFC 6902)."""

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, NamedTuple

from webhook.engine.fields import WrongTypeError, steps_of
from webhook.engine.request import Request
from webhook.engine.violation import UNSET, Patch, Step


def pointer(path: Iterable[Step]) -> str:
    """Return `path` as a JSON pointer (RFC 6901)."""
    return "".join([f"/{step}" if type(step) is int else _token(str(step)) for step in path])


@lru_cache(maxsize=4096)
def _token(step: str) -> str:
    """Return a key as a part of a pointer: `~` and `/` are escaped."""
    return f"/{step.replace('~', '~0').replace('/', '~1')}"


class Change(NamedTuple):
    """One field that was set, in which object or list, and what was there; no path where that was put in before."""

    node: Any
    step: Step
    old: Any
    path: tuple[Step, ...]


class Patcher:
    """Changes one request's object in place, and knows the operations that lead from the original to the result."""

    def __init__(self, request: Request) -> None:
        """Start with no operations."""
        self._request = request
        self._changes: list[Change] = []
        self._added: dict[int, Any] = {}  # by identity: the objects and lists that patches have put in

    def apply(self, patches: Iterable[Patch]) -> bool:
        """Carry out all patches, or none where one of them raises; return whether anything changed.

        A parent of the wrong type is a WrongTypeError, a list item that is not there a LookupError.
        """
        done = len(self._changes)
        try:
            for patch in patches:
                self._apply(patch)
        except Exception:
            while len(self._changes) > done:
                node, step, old, _ = self._changes.pop()
                _put(node, step, old)
            raise
        if len(self._changes) == done:
            return False
        self._request.forget()  # its records are of the object as it was
        return True

    @property
    def operations(self) -> list[dict[str, Any]]:
        """The operations, one for each field that differs, in the order in which fields were set first."""
        first: dict[tuple[int, Step], Change] = {}
        for change in self._changes:
            if change.path:
                first.setdefault((id(change.node), change.step), change)
        found: list[dict[str, Any]] = []
        for node, step, old, path in first.values():
            value = node.get(step, UNSET) if type(node) is dict else node[step]
            is_new = (old is None or old is UNSET) and type(node) is dict  # into a list, "add" would insert
            if value is UNSET and old is not UNSET:
                found.append({"op": "remove", "path": pointer(path)})
            elif not same(value, old):
                found.append({"op": "add" if is_new else "replace", "path": pointer(path), "value": value})
        return found

    def _apply(self, patch: Patch) -> None:
        change, missing = self._found(patch)
        value = patch.value
        if change.old is None or change.old is UNSET:
            if value is None or value is UNSET:
                return
        elif not patch.overwrite or same(change.old, value):
            return
        if type(value) is dict or type(value) is list:
            value = self._own(value)
        for below in reversed(missing):
            if type(below) is int:
                raise LookupError(f"no item {pointer(patch.steps)}")
            value = {below: value}
            self._added[id(value)] = value
        self._changes.append(change)
        _put(change.node, change.step, value)

    def _found(self, patch: Patch) -> tuple[Change, tuple[Step, ...]]:
        """Return the field to set, of the last object or list on the way that is there, and the missing steps below."""
        holder, steps = patch.holder or self._request, patch.path
        while not holder.value and holder.above is not None and isinstance(holder.step, str):
            holder, steps = holder.above, (*steps_of(holder.step), *steps)  # an absent object is read as an empty one
        node: Any = holder.value
        last = len(steps) - 1
        for depth, step in enumerate(steps):
            wanted: Any = list if type(step) is int else dict
            if type(node) is not wanted:
                raise WrongTypeError(holder.path(".".join(map(str, steps[:depth]))), node, wanted)
            old = node[step] if wanted is list else node.get(step, UNSET)
            if depth == last or old is None or old is UNSET:
                break
            node = old
        path = () if id(node) in self._added else (*holder.steps(), *steps[: depth + 1])
        return Change(node, step, old, path), steps[depth + 1 :]

    def _own(self, value: Any) -> Any:
        """Return a copy of a policy's value, which later patches may change."""
        if type(value) is dict:
            value = {key: self._own(each) for key, each in value.items()}
        elif type(value) is list:
            value = [self._own(each) for each in value]
        self._added[id(value)] = value
        return value


def _put(node: Any, step: Step, value: Any) -> None:
    if value is UNSET:
        del node[step]
    else:
        node[step] = value


def same(one: Any, other: Any) -> bool:
    """Return whether two values are equal as JSON: in Python True == 1, in JSON they differ."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)
