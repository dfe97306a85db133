"""The table of functions: what an expression may call, with which types, what it costs, and how it is done."""

from collections.abc import Callable
from typing import Any, TypeVar

from webhook.cel.errors import EvaluationError
from webhook.cel.types import Signature, parse_signature
from webhook.cel.values import Duration, Opaque, Optional, Timestamp, TypeValue, Uint, size_of, type_name

Implementation = TypeVar("Implementation", bound=Callable[..., Any])
Cost = Callable[..., int]

_PYTHON: dict[str, type] = {
    "null_type": type(None),
    "bool": bool,
    "int": int,
    "uint": Uint,
    "double": float,
    "string": str,
    "bytes": bytes,
    "list": list,
    "timestamp": Timestamp,
    "duration": Duration,
    "type": TypeValue,
    "optional_type": Optional,
}


_RECEIVERS = frozenset({"string", "google.protobuf.Timestamp", "google.protobuf.Duration"})
_ORDERED = frozenset({"bool", "int", "uint", "double", "string", "bytes"})
_OPERANDS = {  # the types on the left that an operator is defined for at all
    "_+_": frozenset({"int", "uint", "double", "bytes", "list"}),
    "_-_": frozenset({"int", "uint", "double"}),
    "_*_": frozenset({"int", "uint", "double"}),
    "_/_": frozenset({"int", "uint", "double"}),
    "_%_": frozenset({"int", "uint"}),
    "-_": frozenset({"int", "double"}),
    **dict.fromkeys(("_<_", "_<=_", "_>_", "_>=_"), _ORDERED),
}
_PLAIN = frozenset({"!_", "@in", "contains", "startsWith", "endsWith", "matches", "find", "findAll"})
_NAMED = frozenset({"size", "sort"})


class Function:
    """All versions of one function; `table` remembers which one takes which Python types."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.cost: Cost | None = None
        self.versions: list[tuple[Signature, Callable[..., Any]]] = []
        self.table: dict[tuple[type, ...], Callable[..., Any]] = {}

    def resolve(self, *args: Any) -> Callable[..., Any]:
        """Return the version that takes these values. EvaluationError where none does."""
        for signature, call in self.versions:
            if len(signature.params) == len(args) and all(map(_takes, signature.params, args)):
                self.table[tuple(map(type, args))] = call
                return call
        raise self._unknown([type_name(value) for value in args])

    def _unknown(self, types: list[str]) -> EvaluationError:
        """Return the error for arguments of these types, in cel-go's words."""
        known = _OPERANDS.get(self.name)
        if self.name in _PLAIN or (types and (types[0] in _RECEIVERS and (known or self.name in _NAMED))):
            return EvaluationError("no such overload")
        if known is not None or self.name in _NAMED:
            text = "" if known is not None and types[0] in known else f": {self.name}"
            return EvaluationError(f"no such overload{text}")
        return EvaluationError(f"no such overload: {self.name}({', '.join(types)})")


FUNCTIONS: dict[str, Function] = {}


def declare(call: Callable[..., Any], *signatures: str, cost: Cost | None = None) -> None:
    """Declare what `call` implements; `cost` returns what a call costs, in units, from its arguments."""
    for signature in map(parse_signature, signatures):
        entry = FUNCTIONS.setdefault(signature.name, Function(signature.name))
        entry.versions.append((signature, call))
        entry.cost = cost or entry.cost


def function(*signatures: str, cost: Cost | None = None) -> Callable[[Implementation], Implementation]:
    """Declare what the decorated function implements, as `declare` does."""

    def declared(call: Implementation) -> Implementation:
        declare(call, *signatures, cost=cost)
        return call

    return declared


def declare_order(type_: str) -> None:
    """Declare `isGreaterThan`, `isLessThan` and `compareTo` of an opaque type, by its key."""
    declare(lambda one, two: one.key > two.key, f"({type_}).isGreaterThan({type_}) -> bool")
    declare(lambda one, two: one.key < two.key, f"({type_}).isLessThan({type_}) -> bool")
    declare(lambda one, two: (one.key > two.key) - (one.key < two.key), f"({type_}).compareTo({type_}) -> int")


def linear(text: str | bytes, *_: Any) -> int:
    """Cost in proportion to the length of the first argument."""
    return len(text) >> 3


def per_item(*args: Any) -> int:
    """Cost of copying the arguments."""
    return sum(len(each) if isinstance(each, list | dict) else size_of(each) >> 3 for each in args)


def compared(items: list[Any], *_: Any) -> int:
    """Cost of comparing each item once."""
    return weigh(items) * 4


def product(one: list[Any], two: list[Any]) -> int:
    """Cost of comparing each item with each."""
    return weigh(one) * max(len(two), 1)


def weigh(value: Any) -> int:
    """Return about how many values `value` holds, eight characters counting as one; at least 50,000 of more."""
    total, open_ = 0, [value]
    while open_ and total < 50_000:
        each = open_.pop()
        if isinstance(each, dict | list):
            total += len(each)
            open_.extend(each.values() if isinstance(each, dict) else each)
        elif type(each) is str:
            total += len(each) >> 3
    return total + len(open_) if open_ else total


def _takes(declared: Any, value: Any) -> bool:
    if declared.name == "dyn" or declared.is_parameter:
        return True
    if declared.name == "map":
        return isinstance(value, dict)
    if isinstance(value, Opaque):
        return bool(value.type_name == declared.name)
    return type(value) is _PYTHON.get(declared.name)
