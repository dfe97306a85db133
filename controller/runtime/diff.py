"""Compares the desired with the stored state, without a request to the API server.

The API server adds to the stored object (defaults, other writers' fields and list items) and
rewrites quantities, so an object is up to date if it *contains* the desired fields. Fields that
were applied before and are no longer desired change the digest of the applied state.
"""

import hashlib
from typing import Any, NamedTuple

import orjson

from config.quantities import QuantityError, parse_quantity
from controller.runtime.list_keys import has_keyed_lists, list_key
from kube.resource import JsonObject

# Maps that one manager owns as a whole.
ATOMIC = frozenset({"selector", "matchLabels", "nodeSelector"})
QUANTITIES = frozenset({"requests", "limits"})


def digest(value: Any) -> str:
    """Return a short hash of a JSON value, the same in every process.

    The order of keys does not matter.
    """
    return hashlib.blake2b(
        orjson.dumps(value, option=orjson.OPT_SORT_KEYS), digest_size=8
    ).hexdigest()


def cut(stored: Any, desired: Any) -> Any:
    """Return the stored values of the desired fields."""
    if isinstance(stored, dict) and isinstance(desired, dict):
        return {key: cut(stored.get(key), value) for key, value in desired.items()}
    return stored


def difference(stored: JsonObject, desired: JsonObject) -> str | None:
    """Return the path of the first field that is not as desired; None where all of them are."""
    return FieldComparison(has_keyed_lists(stored)).first(stored, desired, "", "")


class FieldComparison(NamedTuple):
    """A comparison of two objects of one kind; `keyed` if its lists may have keys."""

    keyed: bool

    def first(self, stored: Any, desired: Any, field: str, path: str) -> str | None:
        """Return the path of the first field that is not as desired; None where all of them are."""
        if stored == desired or desired is None or (stored is None and desired in ({}, [])):
            return None
        if isinstance(desired, dict) and isinstance(stored, dict):
            return self._in_map(stored, desired, field, path)
        if isinstance(desired, list) and isinstance(stored, list):
            return self._in_list(stored, desired, field, path)
        return path

    def _in_map(self, stored: JsonObject, desired: JsonObject, field: str, path: str) -> str | None:
        if field in ATOMIC and len(stored) > len(desired):
            return path
        for key, value in desired.items():
            actual = stored.get(key)
            # in list items, such as env variables, the API server does not store empty strings
            if actual == value or (value == "" and actual is None and not field):
                continue
            if field in QUANTITIES and _amount(actual) == _amount(value):
                continue
            difference = self.first(actual, value, key, f"{path}.{key}" if path else key)
            if difference is not None:
                return difference
        return None

    def _in_list(self, stored: list[Any], desired: list[Any], field: str, path: str) -> str | None:
        has_keys = self.keyed or field == "ownerReferences"
        keys = [list_key(field, each) if has_keys else None for each in desired]
        if None not in keys:
            by_key = {list_key(field, each): each for each in stored}
            stored = [by_key[key] for key in keys if key in by_key]
        if len(stored) != len(desired):
            return path
        for place, (actual, item) in enumerate(zip(stored, desired, strict=True)):
            difference = self.first(actual, item, "", f"{path}[{place}]")
            if difference is not None:
                return difference
        return None


def _amount(quantity: Any) -> int | str:
    """Return a quantity in thousandths: the server stores `1000m` as `1`."""
    text = str(quantity)
    try:
        return parse_quantity(text).millis
    except QuantityError:
        return text
