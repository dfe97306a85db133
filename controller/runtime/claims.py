"""Which fields of a child we own and want no more: an earlier release applied them, or an earlier plan did.

The API server notes in `managedFields` what each manager applied. Of ours the cache keeps the fields, once for all
objects that have the same, so that a process that has just started knows without a request whether applying would take
something away.
"""

import functools
from collections.abc import Mapping
from typing import Any

import orjson

from controller.runtime.plan import Object

FIELD_MANAGER = "gatewright-controller"


def is_wanted(applied: bytes, desired: Object) -> bool:
    """Tell whether all fields that were applied before (`fieldsV1`, or nothing) are still desired."""
    return not applied or _within(_decoded(applied), desired)


@functools.lru_cache(maxsize=256)
def _decoded(applied: bytes) -> Any:
    return orjson.loads(applied)


def _within(fields: Mapping[str, Any], desired: Any) -> bool:
    return all(_has(name, below, desired) for name, below in fields.items() if name != ".")


def _has(name: str, below: Mapping[str, Any], desired: Any) -> bool:
    """Tell whether a value has a field, an item with these keys (as far as it says them), or a value."""
    kind, _, said = name.partition(":")
    if kind == "f":
        return isinstance(desired, dict) and said in desired and _within(below, desired[said])
    if not isinstance(desired, list):
        return False
    if kind == "k":
        keys = orjson.loads(said)
        return any(_is_item(each, keys) and _within(below, each) for each in desired)
    return kind != "v" or orjson.loads(said) in desired


def _is_item(item: Any, keys: Mapping[str, Any]) -> bool:
    given = keys.keys() & item.keys() if isinstance(item, dict) else ()
    return bool(given) and all(item[key] == keys[key] for key in given)
