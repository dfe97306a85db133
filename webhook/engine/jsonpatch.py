"""Make a minimal JSONPatch (RFC 6902) while setting fields, without copying the object as a whole."""

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from webhook.engine.fields import Fields, WrongTypeError, steps_of
from webhook.engine.request import Request
from webhook.engine.violation import UNSET, Patch, Step


@lru_cache(maxsize=4096)
def pointer(path: tuple[Step, ...]) -> str:
    """Return `path` as a JSON pointer (RFC 6901): `~` and `/` in a step are escaped."""
    return "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in path)


class Patcher:
    """One request's object that is being changed, and the operations that lead to what it has become.

    The object given is never touched: what a change passes through is copied once, one level at a time. The request's
    records are kept up to date, so that they are parsed once however many policies change them.
    """

    def __init__(self, request: Request) -> None:
        """Start with no operations. The request is the patcher's own: it comes to be about the patched object."""
        self.operations: list[dict[str, Any]] = []
        self._request = request
        self._own: dict[int, Any] = {}  # dicts and lists that may be changed in place, by identity
        self._created: dict[int, Any] = {}  # those of them that are part of an operation's value already
        self._pointers: dict[Fields, str] = {}

    def apply(self, patches: Iterable[Patch]) -> bool:
        """Carry out all patches, or none where one of them raises; return whether anything changed.

        A parent of the wrong type is a WrongTypeError, a list item that is not there a LookupError.
        """
        made = len(self.operations)
        changed: set[tuple[Fields, Step]] = set()
        undo: list[tuple[dict[str, Any], Step, Any]] = []
        try:
            for patch in patches:
                self._set(patch, undo, changed)
            for holder, step in changed:
                self._request.changed(holder, step)
        except Exception:
            for node, step, old in reversed(undo):
                if old is UNSET:
                    del node[step]
                else:
                    node[step] = old
            del self.operations[made:]
            self._request.forget()
            raise
        finally:
            self._request.object = self._request.value
        return bool(undo)

    def _set(
        self,
        patch: Patch,
        undo: list[tuple[dict[str, Any], Step, Any]],
        changed: set[tuple[Fields, Step]],
    ) -> None:
        holder, steps = patch.holder or self._request, patch.path
        if not holder.value:
            holder, steps = _existing(holder, steps)
        depth, current = self._found(holder, steps)
        if patch.value in (None, UNSET) if current is None else not patch.overwrite or same(current, patch.value):
            return
        node = self._owned(holder)
        is_created = id(node) in self._created
        for step in steps[:depth]:
            node = self._owned_child(node, step)
            is_created = is_created or id(node) in self._created
        value = patch.value
        for step in reversed(steps[depth + 1 :]):
            value = {step: value}
            self._own[id(value)] = self._created[id(value)] = value
        step = steps[depth]
        undo.append((node, step, node[step] if isinstance(step, int) else node.get(step, UNSET)))
        if value is UNSET:
            del node[step]
        else:
            node[step] = value
        if value is UNSET and not is_created:
            self.operations.append({"op": "remove", "path": f"{self._pointer(holder)}{pointer(steps)}"})
        elif not is_created:
            adds = current is None and isinstance(step, str)  # into a list, "add" would insert
            path = f"{self._pointer(holder)}{pointer(steps[: depth + 1])}"
            self.operations.append({"op": "add" if adds else "replace", "path": path, "value": value})
        changed.add((holder, steps[0]))

    def _found(self, holder: Fields, steps: tuple[Step, ...]) -> tuple[int, Any]:
        """Return what is at `steps`; where there is nothing, the depth of the first step that is missing, and None."""
        value: Any = holder.value
        for depth, step in enumerate(steps):
            wanted: Any = list if type(step) is int else dict
            if type(value) is not wanted:
                raise WrongTypeError(".".join(map(str, (*holder.steps(), *steps[:depth]))), value, wanted)
            value = value[step] if isinstance(step, int) else value.get(step)
            if value is None:
                if int in map(type, steps[depth + 1 :]):
                    raise LookupError(f"no item {pointer(steps)}")
                return depth, None
        return len(steps) - 1, value

    def _owned(self, record: Fields) -> Any:
        """Return the object of a record, copied where it is still the one that was sent."""
        node = record.value
        if id(node) in self._own:
            return node
        node = record.value = self._copied(node)
        if record.above is not None:
            parent = self._owned(record.above)
            *path, last = _relative(record)
            for step in path:
                parent = self._owned_child(parent, step)
            parent[last] = node
        return node

    def _owned_child(self, node: Any, step: Step) -> Any:
        child = node[step]
        if id(child) not in self._own:
            child = node[step] = self._copied(child)
        return child

    def _copied(self, node: Any) -> Any:
        copy = node.copy()
        self._own[id(copy)] = copy
        return copy

    def _pointer(self, record: Fields) -> str:
        """Return where a record is, made once; what is above it is mostly the same."""
        found = self._pointers.get(record)
        if found is None:
            above = "" if record.above is None else self._pointer(record.above)
            if isinstance(record.step, tuple):
                name, index = record.step
                found = f"{above}{pointer(steps_of(name))}/{index}"
            else:
                found = f"{above}{pointer(steps_of(record.step))}"
            self._pointers[record] = found
        return found


def _relative(record: Fields) -> tuple[Step, ...]:
    """Return the steps to a record from the one above it."""
    name, *index = record.step if isinstance(record.step, tuple) else (record.step,)
    return (*steps_of(name), *index)


def _existing(holder: Fields, steps: tuple[Step, ...]) -> tuple[Fields, tuple[Step, ...]]:
    """Return the same place below a record that is there: an absent object is read as an empty one."""
    while not holder.value and holder.above is not None and isinstance(holder.step, str):
        holder, steps = holder.above, (*steps_of(holder.step), *steps)
    return holder, steps


def same(one: Any, other: Any) -> bool:
    """Return whether two values are equal as JSON: in Python True == 1, in JSON they differ."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)
