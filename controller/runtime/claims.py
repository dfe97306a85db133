"""Which fields of a child we own and want no more: an earlier release applied them, or an earlier plan did.

The API server notes in `managedFields` what each manager applied. Of ours the cache keeps the fields, once for all
objects that have the same, so that a process that has just started knows without a request whether applying would take
something away.
"""

import functools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from controller.runtime.plan import Object

FIELD_MANAGER = "gatewright-controller"


def is_wanted(applied: bytes, desired: Object) -> bool:
    """Tell whether all fields that were applied before (`fieldsV1`, or nothing) are still desired."""
    return not applied or _within(_parsed(applied), desired)


class _Claims(NamedTuple):
    """What was applied within one value: fields, items of a list with these keys, and values of one."""

    fields: Sequence[tuple[str, "_Claims | None"]]
    items: Sequence[tuple[Mapping[str, Any], "_Claims | None"]]
    values: Sequence[Any]


@functools.lru_cache(maxsize=256)
def _parsed(applied: bytes) -> _Claims | None:
    """Return the claims; most objects of a resource have the same."""
    return _claims(orjson.loads(applied))


def _claims(said: Mapping[str, Any]) -> _Claims | None:
    """Return what is claimed within a value, None where that is nothing in particular."""
    parted = [(*name.partition(":")[::2], below) for name, below in said.items() if name != "."]
    fields = [(name, _claims(below)) for kind, name, below in parted if kind == "f"]
    items = [(orjson.loads(keys), _claims(below)) for kind, keys, below in parted if kind == "k"]
    values = [orjson.loads(value) for kind, value, _ in parted if kind == "v"]
    return _Claims(fields, items, values) if parted else None


def _within(claims: _Claims | None, desired: Any) -> bool:
    """Tell whether a value has all fields, items with these keys (as far as it says them), and values.

    Every child is asked after a start: hence no generators.
    """
    if claims is None:
        return True
    fields, items, values = claims
    if fields and not isinstance(desired, dict):
        return False
    for name, within in fields:
        if name not in desired or (within is not None and not _within(within, desired[name])):
            return False
    if not items and not values:
        return True
    if not isinstance(desired, list):
        return False
    for keys, within in items:
        if not _has(desired, keys, within):
            return False
    return all(value in desired for value in values)


def _has(items: list[Any], keys: Mapping[str, Any], within: _Claims | None) -> bool:
    """Tell whether a list has an item with these keys, and the claims within it."""
    for item in items:  # noqa: SIM110
        if isinstance(item, dict) and _is_item(item, keys) and _within(within, item):
            return True
    return False


def _is_item(item: Object, keys: Mapping[str, Any]) -> bool:
    is_item = False
    for key, value in keys.items():
        if key in item:
            if item[key] != value:
                return False
            is_item = True
    return is_item
