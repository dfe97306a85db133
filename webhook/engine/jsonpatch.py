"""Make a minimal JSONPatch (RFC 6902) while setting fields, without copying the object as a whole."""

from typing import Any

from webhook.engine.fields import WrongTypeError
from webhook.engine.policy import Patch, Step


def pointer(path: tuple[Step, ...]) -> str:
    """Return `path` as a JSON pointer (RFC 6901): `~` and `/` in a step are escaped."""
    return "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in path)


class Patcher:
    """One object that is being changed: what it has become, and the operations that lead there.

    The object given is never touched: what a change passes through is copied once, one level at a time.
    """

    def __init__(self, object: dict[str, Any]) -> None:
        """Start from `object` with no operations."""
        self.object = object
        self.operations: list[dict[str, Any]] = []
        self._own: set[tuple[Step, ...]] = set()  # containers that may be changed in place
        self._made: set[tuple[Step, ...]] = set()  # containers that are part of an operation's value already

    def set(self, patch: Patch) -> bool:
        """Carry out `patch`; return whether it changed anything. A parent of the wrong type is a WrongTypeError."""
        current = self._current(patch.path)
        if same(current, patch.value) or (current is not None and not patch.overwrite):
            return False
        node, missing_from, made = self._writable(patch.path)
        value = patch.value
        for depth in range(len(patch.path) - 1, missing_from, -1):
            value = {patch.path[depth]: value}
        node[patch.path[missing_from]] = value
        set_at = patch.path[: missing_from + 1]
        new = {patch.path[:depth] for depth in range(missing_from + 1, len(patch.path))}
        if set_at in self._own:  # what was below it went with it
            self._own = {path for path in self._own if path[: missing_from + 1] != set_at}
            self._made = {path for path in self._made if path[: missing_from + 1] != set_at}
        self._own |= new
        self._made |= new
        if not made:
            adds = current is None and isinstance(set_at[-1], str)  # into a list, "add" would insert
            operation = {"op": "add" if adds else "replace", "path": pointer(set_at), "value": value}
            self.operations.append(operation)
        return True

    def _current(self, path: tuple[Step, ...]) -> Any:
        value: Any = self.object
        for depth, step in enumerate(path):
            if value is None:
                if any(isinstance(later, int) for later in path[depth:]):
                    raise LookupError(f"no item {pointer(path)}")
                return None
            wanted: type = list if isinstance(step, int) else dict
            if not isinstance(value, wanted):
                raise WrongTypeError(".".join(map(str, path[:depth])), value, wanted)
            value = _child(value, step)
        return value

    def _writable(self, path: tuple[Step, ...]) -> tuple[Any, int, bool]:
        """Return the innermost parent that exists, the depth of the step missing below it, and if it is in `_made`."""
        if () not in self._own:
            self.object = self.object.copy()
            self._own.add(())
        node: Any = self.object
        made = False
        for depth, step in enumerate(path[:-1]):
            child = _child(node, step)
            if child is None:
                return node, depth, made
            here = path[: depth + 1]
            if here not in self._own:
                child = node[step] = child.copy()
                self._own.add(here)
            made = made or here in self._made
            node = child
        return node, len(path) - 1, made


def _child(node: Any, step: Step) -> Any:
    return node[step] if isinstance(step, int) else node.get(step)


def same(one: Any, other: Any) -> bool:
    """Return whether two values are equal as JSON: in Python True == 1, in JSON they differ."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)
