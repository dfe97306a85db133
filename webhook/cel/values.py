"""CEL's values in Python: decoded JSON as it is, and types of their own where JSON or Python has none.

null, bool, int, double, string, bytes, list and map are None, bool, int, float, str, bytes, list and dict. `Uint`,
`Timestamp` and `Duration` (both in nanoseconds) are subclasses of int, told apart by their exact type.
"""

import math
from typing import Any

from webhook.cel.errors import EvaluationError, no_overload

MAX_INT, MIN_INT, MAX_UINT = 2**63 - 1, -(2**63), 2**64 - 1


class Uint(int):
    """An unsigned integer of 64 bits."""

    __slots__ = ()


class Timestamp(int):
    """A moment: nanoseconds since 1970-01-01T00:00:00Z."""

    __slots__ = ()


class Duration(int):
    """A span of time, in nanoseconds."""

    __slots__ = ()


class Optional:
    """An optional value; `NONE` has none."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


class TypeValue(str):
    """A type as a value, by its name."""

    __slots__ = ()


class Opaque:
    """A value of a library, compared by `key`; `type_name` is CEL's name of its type."""

    type_name = ""
    key: Any = None


NONE = Optional(None)
ZEROS: tuple[Any, ...] = (None, False, 0, 0.0, "", b"", [], {})
NUMBERS = frozenset({int, Uint, float})
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


def type_name(value: Any) -> str:
    """Return CEL's name of the type of `value`."""
    found = NAMES.get(type(value))
    if found is None:
        found = value.type_name if isinstance(value, Opaque) else "map" if isinstance(value, dict) else "dyn"
    return found


def checked_int(value: int) -> int:
    """Return `value` if it is an int of 64 bits. EvaluationError where it is not."""
    if MIN_INT <= value <= MAX_INT:
        return value
    raise EvaluationError("integer overflow")


def checked_uint(value: int) -> Uint:
    """Return `value` if it is an unsigned int of 64 bits. EvaluationError where it is not."""
    if 0 <= value <= MAX_UINT:
        return Uint(value)
    raise EvaluationError("unsigned integer overflow")


def equal(left: Any, right: Any) -> bool:
    """Return whether two values are equal: numbers by value, everything else only to its own type."""
    kind = type(left)
    if kind is not type(right):
        if kind in NUMBERS and type(right) in NUMBERS:
            return bool(float(left) == float(right) if float in {kind, type(right)} else left == right)
        return isinstance(left, dict) and isinstance(right, dict) and _equal_maps(left, right)
    if kind is list:
        return len(left) == len(right) and all(map(equal, left, right))
    if isinstance(left, dict):
        return _equal_maps(left, right)
    if kind is Optional:
        return left is right or (left is not NONE and right is not NONE and equal(left.value, right.value))
    if isinstance(left, Opaque):
        return bool(left.key == right.key)
    return bool(left == right)


def _equal_maps(left: dict[Any, Any], right: dict[Any, Any]) -> bool:
    return len(left) == len(right) and all(key in right and equal(value, right[key]) for key, value in left.items())


def compare(left: Any, right: Any) -> int:
    """Return -1, 0 or 1 for two values of one ordered type, or two numbers."""
    kinds = type(left), type(right)
    if kinds[0] is not kinds[1] and not (kinds[0] in NUMBERS and kinds[1] in NUMBERS):
        raise no_overload()
    if kinds[0] not in ORDERED:
        raise no_overload()
    if (kinds[0] is float and math.isnan(left)) or (kinds[1] is float and math.isnan(right)):
        raise EvaluationError("NaN values cannot be ordered")
    if kinds[0] is not kinds[1] and float in kinds:
        left, right = float(left), float(right)  # as cel-go, which loses what a double cannot hold
    return int(left > right) - int(left < right)


ORDERED = frozenset({bool, int, Uint, float, str, bytes, Timestamp, Duration})


def size_of(value: Any) -> int:
    """Return how many items, characters or bytes `value` has; 1 where it has none."""
    return len(value) if isinstance(value, str | bytes | list | dict) else 1


def find(container: Any, key: Any) -> Any:
    """Return the value at `key`, or `NONE` where there is none. EvaluationError where the key is of a wrong type."""
    if isinstance(container, dict):
        kind = type(key)
        if kind is str:
            return container.get(key, NONE)
        if kind is float:
            return container.get(int(key), NONE) if key.is_integer() else NONE
        if kind is bool or kind is int or kind is Uint:
            return next((container[key] for _ in (0,) if key in container), NONE)
        raise EvaluationError(f"unsupported key type: {type_name(key)}") if kind is not type(None) else no_overload()
    if type(container) is list:
        index = list_index(key)
        return container[index] if 0 <= index < len(container) else NONE
    return NONE


def list_index(key: Any) -> int:
    """Return `key` as an index of a list."""
    if type(key) in NUMBERS:
        if type(key) is not float or key.is_integer():
            return int(key)
        raise EvaluationError("unsupported index value: double")
    raise EvaluationError(f"unsupported index type '{type_name(key)}' in list")


def member(container: Any, key: Any) -> Any:
    """Return `container[key]`. EvaluationError where it is not there."""
    value = find(container, key)
    if value is not NONE:
        return value
    if type(container) is list:
        raise EvaluationError(f"index out of bounds: {_shown(key)}")
    raise EvaluationError(f"no such key: {_shown(key)}")


def field(container: Any, name: str) -> Any:
    """Return `container.name`; of an optional, an optional. EvaluationError where it is not there."""
    if type(container) is not Optional:
        return member(container, name)
    if container is not NONE and not isinstance(container.value, dict | Optional):
        raise EvaluationError(f"no such key: {name}")
    return optional_index(container, name)


def index(container: Any, key: Any) -> Any:
    """Return `container[key]`; of an optional, an optional. EvaluationError where it is not there."""
    return optional_index(container, key) if type(container) is Optional else member(container, key)


def optional_index(container: Any, key: Any) -> Optional:
    """Return `container[?key]`: an optional with the value, or with none."""
    while type(container) is Optional:
        if container is NONE:
            return NONE
        container = container.value
    value = find(container, key)
    return NONE if value is NONE else Optional(value)


def has(container: Any, key: str) -> bool:
    """Return whether `container` has a field `key`, as `has()` does."""
    if type(container) is Optional:
        return container is not NONE and has(container.value, key)
    return find(container, key) is not NONE


def is_zero(value: Any) -> bool:
    """Return whether `value` is the zero value of its type."""
    return value is None or (not isinstance(value, Opaque | Optional | Timestamp) and not value)


def _shown(key: Any) -> str:
    if type(key) is float and key.is_integer():
        return str(int(key))
    return str(key).lower() if type(key) is bool else str(key)
