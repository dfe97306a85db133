"""The table of functions: what an expression may call, with which types, what it costs, and how it is evaluated."""

import operator
from collections.abc import Callable
from typing import Any

from webhook.cel.errors import BudgetError, CelError, no_overload
from webhook.cel.types import Signature, Type, parse_signatures
from webhook.cel.values import type_name

Frame = list[
    Any
]  # of an evaluation: the meter of its cost, the declared variables in order, then what macros bind
Code = Callable[[Frame], Any]
Implementation = Callable[..., Any]
Cost = Callable[..., int]  # what a call costs, in units, from its arguments
Row = tuple[str, Implementation] | tuple[str, Implementation, Cost]

# As in cel-go, these look for a trait of the first operand, and only where it has none the error
# has their name.
_BY_TRAIT = frozenset(
    ["_<_", "_<=_", "_>_", "_>=_", "_+_", "_-_", "_*_", "_/_", "_%_", "-_", "size", "sort"]
)
_WITH_ALL_TRAITS = frozenset({"string", "google.protobuf.Timestamp", "google.protobuf.Duration"})
_WITHOUT_TEXT = frozenset(
    ["!_", "@in", "contains", "startsWith", "endsWith", "matches", "find", "findAll"]
)


class Function:
    """All versions of one function; `table` remembers which one takes which Python types."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.form: Callable[..., Code] | None = None
        self.cost: Cost | None = None
        self.versions: list[tuple[Signature, Implementation]] = []
        self.table: dict[tuple[type, ...], Implementation] = {}

    def __call__(self, *args: Any) -> Any:
        """Return what the version for these values returns."""
        return (self.table.get(tuple(map(type, args))) or self.resolve(*args))(*args)

    def resolve(self, *args: Any) -> Implementation:
        """Return the version that takes these values.

        EvaluationError where none does, in cel-go's words.
        """
        names = [type_name(value) for value in args]
        for signature, call in self.versions:
            types = signature.types(len(args))
            if types is not None and all(map(Type.may_be, types, names)):
                if (
                    not signature.is_variadic
                ):  # of which there are as many types as there are lists of arguments
                    self.table[tuple(map(type, args))] = call
                return call
        if self.name not in _BY_TRAIT:
            raise no_overload(
                "" if self.name in _WITHOUT_TEXT else f"{self.name}({', '.join(names)})"
            )
        with_trait = _WITH_ALL_TRAITS | {signature.params[0].name for signature, _ in self.versions}
        raise no_overload("" if names[0] in with_trait else self.name)

    def code(self, args: list[Code]) -> Code:
        """Return the closure of a call, which chooses the version by the types of the arguments."""
        if self.form is not None:
            return self.form(*args)
        table, resolve, cost = self.table, self.resolve, self.cost
        if len(args) == 2:  # as most calls; without a list of values a third faster
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


def declare(*rows: Row) -> None:
    """Add functions to the table: signatures, what evaluates a call, and what it costs (nothing if left out)."""
    for signatures, call, *cost in rows:
        for signature in parse_signatures(signatures):
            entry = FUNCTIONS.setdefault(signature.name, Function(signature.name))
            entry.versions.append((signature, call))
            entry.cost = cost[0] if cost else entry.cost


def declare_forms(*rows: tuple[str, Callable[..., Code]]) -> None:
    """Add functions that decide what of their operands is evaluated: they take closures and return one."""
    declare(*rows)
    for signatures, form in rows:
        FUNCTIONS[parse_signatures(signatures)[0].name].form = form


def ordered(type_: str) -> list[Row]:
    """Return the rows that compare values of a library's type, which Python can order."""
    return [
        (f"({type_}).isGreaterThan({type_}) -> bool", operator.gt),
        (f"({type_}).isLessThan({type_}) -> bool", operator.lt),
        (f"({type_}).compareTo({type_}) -> int", lambda one, two: (one > two) - (one < two)),
    ]


def succeeds(call: Callable[..., Any]) -> Callable[..., bool]:
    """Return the function that says whether `call` returns without an error."""
    return lambda *args: fault(call, *args) is None


def fault(call: Callable[..., Any], *args: Any) -> CelError | None:
    """Return the error that a call ends with, if any."""
    try:
        call(*args)
    except CelError as error:
        return error
    return None


def charge(frame: Frame, cost: int) -> None:
    """Take `cost` from the budget. BudgetError where it is used up."""
    meter = frame[0]
    meter[0] -= cost
    if meter[0] < 0:
        raise BudgetError


def weigh(*values: Any) -> int:
    """Return about how many values `values` hold, eight characters counting as one.

    At least 50,000 of more.
    """
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
