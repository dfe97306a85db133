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

    The object given is never touched: what a change passes through is copied once, one level at a time.
    """

    def __init__(self, request: Request) -> None:
        """Start with no operations. The request is the patcher's own: it comes to be about the patched object."""
        self._request = request
        self._copies: dict[int, tuple[Any, Any]] = {}  # by identity: a copy, which may be changed, and its original

    def apply(self, patches: Iterable[Patch]) -> bool:
        """Carry out all patches, or none where one of them raises; return whether anything changed.

        A parent of the wrong type is a WrongTypeError, a list item that is not there a LookupError.
        """
        undo: list[tuple[Any, Step, Any]] = []
        try:
            for patch in patches:
                self._set(patch, undo)
        except Exception:
            for node, step, old in reversed(undo):
                if old is UNSET:
                    del node[step]
                else:
                    node[step] = old
            raise
        finally:
            self._request.object = self._request.value
            if undo:
                self._request.forget()  # its records are of the object as it was
        return bool(undo)

    @property
    def operations(self) -> list[dict[str, Any]]:
        """The operations, in the order of the object's fields."""
        found: list[dict[str, Any]] = []
        if id(self._request.value) in self._copies:
            self._compare(self._request.value, "", found)
        return found

    def _compare(self, node: Any, place: str, found: list[dict[str, Any]]) -> None:
        """Find the operations that lead from the original of a copy to what it has become."""
        original = self._copies[id(node)][1]
        is_object = type(node) is dict
        for step, value in node.items() if is_object else enumerate(node):
            old = original.get(step, UNSET) if is_object else original[step]
            if value is old:
                continue
            path = place + pointer((step,)) if is_object else f"{place}/{step}"
            is_new = old is None or old is UNSET
            if not is_new and id(value) in self._copies and self._copies[id(value)][1] is old:
                self._compare(value, path, found)
            elif is_new or not same(value, old):
                adds = is_new and is_object  # into a list, "add" would insert
                found.append({"op": "add" if adds else "replace", "path": path, "value": value})
        if is_object and not original.keys() <= node.keys():
            gone = [step for step in original if step not in node]
            found += [{"op": "remove", "path": place + pointer((step,))} for step in gone]

    def _set(self, patch: Patch, undo: list[tuple[Any, Step, Any]]) -> None:
        node, step, current, missing = self._found(patch)
        value = patch.value
        if current is None:
            if value is None or value is UNSET:
                return
            for below in reversed(missing):
                if type(below) is int:
                    raise LookupError(f"no item {pointer(patch.steps)}")
                value = {below: value}
                self._copies[id(value)] = value, UNSET
        elif not patch.overwrite or same(current, value):
            return
        undo.append((node, step, node[step] if type(step) is int else node.get(step, UNSET)))
        if value is UNSET:
            del node[step]
        else:
            node[step] = value

    def _found(self, patch: Patch) -> tuple[Any, Step, Any, tuple[Step, ...]]:
        """Return the last node on the way that is there, copied, the step from it, what is there, and missing steps."""
        holder, steps = patch.holder or self._request, patch.path
        while not holder.value and holder.above is not None and isinstance(holder.step, str):
            holder, steps = holder.above, (*steps_of(holder.step), *steps)  # an absent object is read as an empty one
        node = self._copied(holder)
        last = len(steps) - 1
        for depth, step in enumerate(steps):
            wanted: Any = list if type(step) is int else dict
            if type(node) is not wanted:
                raise WrongTypeError(".".join(map(str, (*holder.steps(), *steps[:depth]))), node, wanted)
            current = node[step] if wanted is list else node.get(step)
            if current is None or depth == last:
                break
            node = current if id(current) in self._copies else self._child(node, step)
        return node, step, current, steps[depth + 1 :]

    def _copied(self, record: Fields) -> Any:
        """Return the object of a record, copied where it is still the one that was sent."""
        node = record.value
        if id(node) not in self._copies:
            if record.above is None:
                node = self._copy(node)
            else:
                node = self._copied(record.above)
                for step in record.steps_below():
                    node = self._child(node, step)
            record.value = node
        return node

    def _child(self, node: Any, step: Step) -> Any:
        """Return what is at `step` of a copy, copied too if it has fields or items."""
        child = node[step]
        if id(child) not in self._copies and type(child) in (dict, list):
            child = node[step] = self._copy(child)
        return child

    def _copy(self, node: Any) -> Any:
        copy = node.copy()
        self._copies[id(copy)] = copy, node
        return copy


def same(one: Any, other: Any) -> bool:
    """Return whether two values are equal as JSON: in Python True == 1, in JSON they differ."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)
