"""Applies JSONPatch operations (RFC 6902) as the API server's library does.

Source: evanphx/json-patch v4, which takes more than the RFC: `replace` of an unset field sets it, a
missing `value` is null, a `test` of an unset field passes without a value (not with null), and an
index may be negative. A null that an operation has set can be read like an empty object.
"""

import copy
import re
from collections.abc import Iterable, Mapping
from typing import Any

from kube.resource import JsonObject
from webhook.engine.jsonpatch import same
from webhook.engine.policy import RuleError

INDEX = re.compile(r"[+-]?[0-9]{1,9}")


class _TestFailedError(Exception):
    """A `test` failed, so that the patch does not apply."""


class _UnpatchableError(Exception):
    """An operation names a place that the object does not have."""


class _Null(dict[str, Any]):
    """A null that an operation has set: an object without keys, to which none can be added."""


def apply_operations(object: JsonObject, operations: Iterable[Mapping[str, Any]]) -> Any:
    """Return the patched object; the object itself if a `test` fails.

    Raises RuleError for an operation that cannot be applied.
    """
    patched: Any = {"": copy.deepcopy(object)}
    for index, operation in enumerate(operations):
        try:
            _apply(patched, operation)
        except _TestFailedError:
            return object
        except _UnpatchableError:
            # Without values, which may be secret.
            title = f"operation {index} of the JSONPatch ({operation['op']} {operation['path']})"
            raise RuleError(f"{title} cannot be applied to the object") from None
    return _without_markers(patched[""])


def _without_markers(value: Any) -> Any:
    """Return a copy of a value, with None for what operations have set to null."""
    if isinstance(value, _Null):
        return None
    if isinstance(value, dict):
        return {key: _without_markers(item) for key, item in value.items()}
    return [_without_markers(item) for item in value] if isinstance(value, list) else value


def _apply(root: Any, operation: Mapping[str, Any]) -> None:
    op, value = operation["op"], _operand(root, operation)
    holder, key = _find(root, operation["path"], op)
    if op == "remove":
        _remove(holder, key)
    elif op == "test":
        current = _get(holder, key)
        is_missing = current is None and "value" not in operation
        if not is_missing and (current is None or not _is_equal(current, value)):
            raise _TestFailedError
    elif op == "replace":
        _get(holder, key)
        _set(holder, key if isinstance(holder, dict) else _index(key, len(holder)), value)
    elif op not in ("add", "move", "copy"):
        raise _UnpatchableError
    elif isinstance(holder, dict):
        _set(holder, key, value)
    else:
        holder.insert(len(holder) if key == "-" else _index(key, len(holder) + 1), value)


def _operand(root: Any, operation: Mapping[str, Any]) -> Any:
    """Return the value of an operation; a `move` removes it where it was."""
    op = operation["op"]
    if op not in ("move", "copy"):
        value = operation.get("value")
        return _Null() if value is None and "value" in operation else value
    holder, key = _find(root, operation.get("from", ""), op)
    value = _get(holder, key)
    if op == "move":
        _remove(holder, key)
        return value
    return value if isinstance(value, _Null) else _without_markers(value)


def _set(holder: Any, key: str | int, value: Any) -> None:
    if isinstance(holder, _Null):
        raise _UnpatchableError
    holder[key] = value


def _is_equal(found: Any, value: Any) -> bool:
    """Return whether a `test` passes; null equals an empty object, and an empty list null."""
    if isinstance(value, _Null):
        return found in ({}, [])
    return value == {} if isinstance(found, _Null) else same(found, value)


def _find(root: Any, path: str, op: str) -> tuple[Any, str]:
    """Return the object or list that has the last step of a pointer, and this step.

    Only `replace` and `test` take the whole object.
    """
    if "/" not in path and (path or op not in ("replace", "test")):
        raise _UnpatchableError
    holder = root
    steps = ["", *(each.replace("~1", "/").replace("~0", "~") for each in path.split("/")[1:])]
    for step in steps[:-1]:
        holder = _get(holder, step)
        if not isinstance(holder, dict | list):
            raise _UnpatchableError
    return holder, steps[-1]


def _get(holder: Any, key: str) -> Any:
    """Return a value; None for a key that an object does not have."""
    return holder.get(key) if isinstance(holder, dict) else holder[_index(key, len(holder))]


def _remove(holder: Any, key: str) -> None:
    if isinstance(holder, dict) and key not in holder:
        raise _UnpatchableError
    del holder[key if isinstance(holder, dict) else _index(key, len(holder))]


def _index(key: str, length: int) -> int:
    """Return an index of a list; a negative one counts from its end."""
    index = int(key) if INDEX.fullmatch(key) else length
    if not -length <= index < length:
        raise _UnpatchableError
    return index + length if index < 0 else index
