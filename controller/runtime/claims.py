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


class _Claim(NamedTuple):
    """A field (`f`), an item of a list with these keys (`k`) or a value in one (`v`), and the claims within it."""

    kind: str
    said: Any
    within: Sequence["_Claim"]


@functools.lru_cache(maxsize=256)
def _parsed(applied: bytes) -> Sequence[_Claim]:
    """Return the claims; most objects of a resource have the same."""
    return _claims(orjson.loads(applied))


def _claims(fields: Mapping[str, Any]) -> Sequence[_Claim]:
    parted = ((name.partition(":"), below) for name, below in fields.items() if name != ".")
    return tuple(
        _Claim(kind, said if kind == "f" else orjson.loads(said), _claims(below)) for (kind, _, said), below in parted
    )


def _within(claims: Sequence[_Claim], desired: Any) -> bool:
    """Tell whether a value has all fields, items with these keys (as far as it says them), and values.

    Every child is asked after a start: hence no generators.
    """
    for kind, said, within in claims:
        if kind == "f":
            if not isinstance(desired, dict) or said not in desired:
                return False
            if within and not _within(within, desired[said]):
                return False
        elif not isinstance(desired, list) or not _has(kind, said, within, desired):
            return False
    return True


def _has(kind: str, said: Any, within: Sequence[_Claim], desired: list[Any]) -> bool:
    if kind == "k":
        return any(_is_item(each, said) and _within(within, each) for each in desired)
    return kind != "v" or said in desired


def _is_item(item: Any, keys: Mapping[str, Any]) -> bool:
    given = keys.keys() & item.keys() if isinstance(item, dict) else ()
    return bool(given) and all(item[key] == keys[key] for key in given)
