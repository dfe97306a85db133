"""CEL's values in Python: decoded JSON unchanged, and types that JSON lacks.

null, bool, int, double, string, bytes, list and map are None, bool, int, float, str, bytes, list
and dict. `Uint`, `Timestamp` and `Duration` (both in nanoseconds) are subclasses of int,
distinguished by their exact type. Libraries add their types to `NAMES`.
"""

import math
from dataclasses import dataclass
from functools import cmp_to_key
from itertools import repeat
from typing import Any, TypeVar

from webhook.cel.cost import COMPARED, Meter, comparing
from webhook.cel.errors import EvaluationError, no_overload

MAX_INT, MIN_INT, MAX_UINT = 2**63 - 1, -(2**63), 2**64 - 1
SECOND = 10**9


class Uint(int):
    """An unsigned integer of 64 bits."""


class Timestamp(int):
    """A moment: nanoseconds since 1970-01-01T00:00:00Z."""


class Duration(int):
    """A span of time, in nanoseconds."""


@dataclass(eq=False, slots=True)
class Optional:
    """An optional value; `NONE` has none."""

    value: Any


class TypeValue(str):
    """A type as a value, by its name."""

    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        return type(other) is TypeValue and str.__eq__(self, other)


NONE = Optional(None)
_SCALARS = frozenset({bool, int, float, type(None)})
NUMBERS = frozenset({int, Uint, float})
KEYS = frozenset({str, bool, int, Uint})  # what a key of a map can be
ORDERED = frozenset({bool, int, Uint, float, str, bytes, Timestamp, Duration})
_COMPARED_AS_THEY_ARE = ORDERED - {float}
NAMES: dict[type, str] = {
    type(None): "null_type",
    bool: "bool",
    int: "int",
    Uint: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    list: "list",
    dict: "map",
    Timestamp: "google.protobuf.Timestamp",
    Duration: "google.protobuf.Duration",
    TypeValue: "type",
    Optional: "optional_type",
}
_LIMITS: dict[type, tuple[int, int, str]] = {
    int: (MIN_INT, MAX_INT, "integer overflow"),
    Uint: (0, MAX_UINT, "unsigned integer overflow"),
    Duration: (MIN_INT, MAX_INT, "duration overflow"),
    # The years 1 to 9999.
    Timestamp: (-62_135_596_800 * SECOND, 253_402_300_800 * SECOND - 1, "timestamp overflow"),
}
Integer = TypeVar("Integer", bound=int)


def type_name(value: Any) -> str:
    """Return CEL's name of the type of `value`."""
    return NAMES.get(type(value)) or ("map" if isinstance(value, dict) else "dyn")


def check_range(kind: type[Integer], value: float) -> Integer:
    """Return `value` as an integer of this type. Raises EvaluationError if it is out of range."""
    lowest, highest, text = _LIMITS[kind]
    if lowest <= value <= highest:
        return kind(value)
    raise EvaluationError(text)


def equal(meter: Meter, left: Any, right: Any) -> bool:
    """Return whether two values are equal: numbers by value, others only within their type.

    Charges for each item and each long string that it compares.
    """
    kind = type(left)
    if kind is type(right):
        if kind in _SCALARS or (kind is str and len(left) < 1 << COMPARED):
            return bool(left == right)
        if kind is not list and kind is not dict and kind is not Optional:
            meter.charge(comparing(left, right))
            return bool(left == right)
    elif kind in NUMBERS and type(right) in NUMBERS:
        if float in {kind, type(right)}:
            return float(left) == float(right)
        return bool(left == right)
    if isinstance(left, dict) and isinstance(right, dict):
        return len(left) == len(right) and _equal_entries(meter, left, right)
    if kind is not type(right):
        return False
    if kind is Optional:
        return left is right or (
            left is not NONE and right is not NONE and equal(meter, left.value, right.value)
        )
    if len(left) != len(right):
        return False
    meter.charge(3 * len(left))
    return all(map(equal, repeat(meter), left, right))


def _equal_entries(meter: Meter, left: dict[Any, Any], right: dict[Any, Any]) -> bool:
    meter.charge(4 * len(left))
    return all(key in right and equal(meter, value, right[key]) for key, value in left.items())


def compare(left: Any, right: Any) -> int:
    """Return -1, 0 or 1 for two numbers, or two values of one ordered type."""
    if type(left) is type(right) and type(left) in _COMPARED_AS_THEY_ARE:
        return int(left > right) - int(left < right)
    kinds = {type(left), type(right)}
    if not kinds <= ORDERED or (len(kinds) > 1 and not kinds <= NUMBERS):
        raise no_overload()
    if len(kinds) > 1 and float in kinds:
        left, right = float(left), float(right)  # as in cel-go, which loses precision
    if float in kinds and (math.isnan(left) or math.isnan(right)):
        raise EvaluationError("NaN values cannot be ordered")
    return int(left > right) - int(left < right)


def sorted_by(meter: Meter, pairs: list[tuple[Any, Any]]) -> list[Any]:
    """Return the second item of each pair, sorted by the first, which have one ordered type."""
    meter.charge(5 + len(pairs))
    if any(type(key) is not type(pairs[0][0]) for key, _ in pairs):
        raise EvaluationError("list elements must have the same type")
    if pairs and type(pairs[0][0]) not in ORDERED:
        raise EvaluationError("list elements must be comparable")

    def order(one: Any, two: Any) -> int:
        meter.charge(7 + comparing(one, two))
        return compare(one, two)

    by_order = cmp_to_key(order)
    return [item for _, item in sorted(pairs, key=lambda pair: by_order(pair[0]))]


def brief(value: Any) -> str:
    """Return a short text for an error; of a container, its type."""
    if isinstance(value, str):
        return value[:1000]
    return type_name(value) if isinstance(value, dict | list | bytes | Optional) else str(value)


def find(container: Any, key: Any) -> Any:
    """Return the value at `key`, or `NONE`. Raises EvaluationError for a key of a wrong type."""
    kind = type(key)
    if isinstance(container, dict):
        if kind is float:
            key = int(key) if key.is_integer() else NONE
        elif key is None:
            raise no_overload()
        elif kind not in KEYS:
            raise EvaluationError(f"unsupported key type: {type_name(key)}")
        try:
            return container[key]
        except KeyError:
            return NONE
    if type(container) is list:
        if kind not in NUMBERS:
            raise EvaluationError(f"unsupported index type '{type_name(key)}' in list")
        if kind is float and not key.is_integer():
            raise EvaluationError("unsupported index value: double")
        return container[int(key)] if 0 <= key < len(container) else NONE
    return NONE


def index(container: Any, key: Any) -> Any:
    """Return `container[key]`; of an optional, an optional. Raises EvaluationError if absent."""
    if type(container) is Optional:
        return optional_index(container, key)
    value = find(container, key)
    if value is not NONE:
        return value
    shown = str(int(key)) if type(key) is float and key.is_integer() else brief(key)
    shown = shown.lower() if type(key) is bool else shown
    fault = "index out of bounds" if type(container) is list else "no such key"
    raise EvaluationError(f"{fault}: {shown}")


def field(container: Any, name: str) -> Any:
    """Return `container.name`; of an optional, an optional. Raises EvaluationError if absent."""
    is_some = type(container) is Optional and container is not NONE
    if is_some and not isinstance(container.value, dict | Optional):
        raise EvaluationError(f"no such key: {brief(name)}")
    return index(container, name)


def optional_index(container: Any, key: Any) -> Optional:
    """Return `container[?key]`: an optional with the value, or an empty one."""
    while type(container) is Optional:
        if container is NONE:
            return NONE
        container = container.value
    value = find(container, key)
    return NONE if value is NONE else Optional(value)
