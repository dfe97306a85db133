"""Which fields of a child we own and want no more: an earlier release applied them, or an earlier plan did.

The API server notes in `managedFields` what each manager applied. Of ours the cache keeps the fields, once for all
objects that have the same, so that a process that has just started knows without a request whether applying would take
something away.
"""

import functools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import orjson

FIELD_MANAGER = "gatewright-controller"


class Claims(NamedTuple):
    """What was applied within one value: fields, items of a list with these keys, and values of one."""

    fields: Mapping[str, "Claims | None"]
    items: Sequence[tuple[Mapping[str, Any], "Claims | None"]]
    values: Sequence[Any]


def claims_of(applied: bytes) -> Claims | None:
    """Return what was applied (`fieldsV1`, or nothing); None where that is nothing in particular."""
    return _parsed(applied) if applied else None


@functools.lru_cache(maxsize=256)
def _parsed(applied: bytes) -> Claims | None:
    """Return the claims; most objects of a resource have the same."""
    return _within(orjson.loads(applied))


def _within(said: Mapping[str, Any]) -> Claims | None:
    """Return what is claimed within a value, None where that is nothing in particular."""
    parted = [(*name.partition(":")[::2], below) for name, below in said.items() if name != "."]
    fields = {name: _within(below) for kind, name, below in parted if kind == "f"}
    items = [(orjson.loads(keys), _within(below)) for kind, keys, below in parted if kind == "k"]
    values = [orjson.loads(value) for kind, value, _ in parted if kind == "v"]
    return Claims(fields, items, values) if parted else None


def is_wanted(claims: Claims, desired: list[Any]) -> bool:
    """Tell whether a list has all items and all values that are claimed."""
    for keys, _ in claims.items:
        if not any(_is_item(each, keys) for each in desired):
            return False
    return all(value in desired for value in claims.values)


def of_item(claims: Claims, item: Any) -> Claims | None:
    """Return what is claimed within an item of a list."""
    for keys, within in claims.items:
        if _is_item(item, keys):
            return within
    return None


def _is_item(item: Any, keys: Mapping[str, Any]) -> bool:
    """Tell whether an item has these keys, as far as it says them: the server may have filled some in."""
    if not isinstance(item, dict):
        return False
    found = False
    for key, value in keys.items():
        if key in item:
            if item[key] != value:
                return False
            found = True
    return found
