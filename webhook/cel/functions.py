"""The table of functions: what an expression may call, with which types, what it costs, and how it is done."""

import operator
from collections.abc import Callable
from typing import Any, TypeVar

from webhook.cel.errors import BudgetError, CelError, EvaluationError, no_overload
from webhook.cel.signatures import Signature, parse_signature
from webhook.cel.types import Type
from webhook.cel.values import type_name

Frame = list[Any]  # of an evaluation: the meter of its cost, the declared variables in order, then what macros bind
Code = Callable[[Frame], Any]
Implementation = TypeVar("Implementation", bound=Callable[..., Any])

_RECEIVERS = " string google.protobuf.Timestamp google.protobuf.Duration"
_OPERATORS = {
    "_+_": "int uint double bytes list",
    **dict.fromkeys(("_-_", "_*_", "_/_"), "int uint double"),
    "_%_": "int uint",
    "-_": "int double",
    **dict.fromkeys(("_<_", "_<=_", "_>_", "_>=_"), "bool int uint double bytes"),
    **dict.fromkeys(("size", "sort"), ""),
}
_TERSE = {name: frozenset((types + _RECEIVERS).split()) for name, types in _OPERATORS.items()}
_ALWAYS_TERSE = frozenset({"!_", "@in", "contains", "startsWith", "endsWith", "matches", "find", "findAll"})


class Function:
    """All versions of one function; `table` remembers which one takes which Python types."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.form: Callable[..., Code] | None = None
        self.cost: Callable[..., int] | None = None
        self.versions: list[tuple[Signature, Callable[..., Any]]] = []
        self.table: dict[tuple[type, ...], Callable[..., Any]] = {}

    def __call__(self, *args: Any) -> Any:
        """Return what the version for these values returns."""
        return (self.table.get(tuple(map(type, args))) or self.resolve(*args))(*args)

    def resolve(self, *args: Any) -> Callable[..., Any]:
        """Return the version that takes these values. EvaluationError where none does."""
        names = [type_name(value) for value in args]
        for signature, call in self.versions:
            types = signature.types(len(args))
            if types is not None and all(map(Type.may_be, types, names)):
                if not signature.is_variadic:  # of which there are as many types as there are lists of arguments
                    self.table[tuple(map(type, args))] = call
                return call
        raise self._no_version(names)

    def _no_version(self, names: list[str]) -> EvaluationError:
        """Return the error for arguments of these types, in cel-go's words."""
        if self.name in _ALWAYS_TERSE or (names and names[0] in _TERSE.get(self.name, ())):
            return no_overload()
        shown = "" if self.name in _TERSE else f"({', '.join(names)})"
        return EvaluationError(f"no such overload: {self.name}{shown}")

    def code(self, args: list[Code]) -> Code:
        """Return the closure of a call, which chooses the version by the types of the arguments."""
        if self.form is not None:
            return self.form(*args)
        table, resolve, cost = self.table, self.resolve, self.cost
        if len(args) == 2:
            left, right = args

            def binary(frame: Frame) -> Any:
                one, two = left(frame), right(frame)
                found = table.get((type(one), type(two))) or resolve(one, two)
                if cost is not None:
                    charge(frame, cost(one, two))
                return found(one, two)

            return binary

        def called(frame: Frame) -> Any:
            values = [arg(frame) for arg in args]
            found = table.get(tuple([type(value) for value in values])) or resolve(*values)
            if cost is not None:
                charge(frame, cost(*values))
            return found(*values)

        return called


FUNCTIONS: dict[str, Function] = {}


def function(
    *signatures: str, cost: Callable[..., int] | None = None, compiles: bool = False
) -> Callable[[Implementation], Implementation]:
    """Declare what the decorated function implements.

    `cost` returns what a call costs, in units, from its arguments. With `compiles`, the function takes the closures of
    its operands and returns the closure of the call, so that it decides what is evaluated.
    """

    def declared(call: Implementation) -> Implementation:
        for signature in (each for text in signatures for each in parse_signature(text)):
            entry = FUNCTIONS.setdefault(signature.name, Function(signature.name))
            entry.versions.append((signature, call))
            entry.cost = cost or entry.cost
            entry.form = call if compiles else entry.form
        return call

    return declared


def ordered(type_: str) -> None:
    """Declare `isGreaterThan`, `isLessThan` and `compareTo` of a type of a library, whose values Python can order."""
    function(f"({type_}).isGreaterThan({type_}) -> bool")(operator.gt)
    function(f"({type_}).isLessThan({type_}) -> bool")(operator.lt)
    function(f"({type_}).compareTo({type_}) -> int")(lambda one, two: (one > two) - (one < two))


def charge(frame: Frame, cost: int) -> None:
    """Take `cost` from the budget. BudgetError where it is used up."""
    meter = frame[0]
    meter[0] -= cost
    if meter[0] < 0:
        raise BudgetError


def weigh(*values: Any) -> int:
    """Return about how many values `values` hold, eight characters counting as one; at least 50,000 of more."""
    total, open_ = 0, list(values)
    while open_ and total < 50_000:
        each = open_.pop()
        if type(each) is str or type(each) is bytes:
            total += len(each) >> 3
        elif isinstance(each, dict | list):
            total += len(each)
            open_.extend(each.values() if isinstance(each, dict) else each)
    return total + len(open_)


def parsing(*values: Any) -> int:
    """Cost of parsing a text, such as a quantity, or of as much work."""
    return 30 + weigh(*values)


def compared(*values: Any) -> int:
    """Cost of comparing each item of the values once."""
    return weigh(*values) * 4


def product(one: list[Any], two: list[Any]) -> int:
    """Cost of comparing each item with each."""
    return weigh(one) * max(len(two), 1)


def fault(call: Callable[..., Any], *args: Any) -> CelError | None:
    """Return the error that a call ends with, if any."""
    try:
        call(*args)
    except CelError as error:
        return error
    return None
