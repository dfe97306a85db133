"""The table of functions: types, cost and implementation of what expressions may call."""

import operator
from collections.abc import Callable
from typing import Any, NamedTuple

from webhook.cel.cost import NO_MORE, WALKED, Cost, Meter, Walked
from webhook.cel.errors import EvaluationError, no_overload
from webhook.cel.types import Signature, Type, parse_signatures
from webhook.cel.values import type_name

# Of an evaluation: its meter, the declared variables in order, then what macros bind.
Frame = list[Any]
Code = Callable[[Frame], Any]
Implementation = Callable[..., Any]
Row = tuple[str, Implementation, Cost]
# Operators that decide what of their operands is evaluated: a form takes closures and returns one,
# which costs no more than its nodes.
FormRow = tuple[str, Callable[..., Code]]

# As in cel-go, these look for a trait of the first operand, and only where it has none the error
# has their name.
_BY_TRAIT = frozenset(
    ["_<_", "_<=_", "_>_", "_>=_", "_+_", "_-_", "_*_", "_/_", "_%_", "-_", "size", "sort"]
)
_WITH_ALL_TRAITS = frozenset({"string", "google.protobuf.Timestamp", "google.protobuf.Duration"})
_WITHOUT_TEXT = frozenset(
    ["!_", "@in", "contains", "startsWith", "endsWith", "matches", "find", "findAll"]
)
_WITH_PARAMETERS = {"list": "list(dyn)", "map": "map(dyn, dyn)"}


Charge = Callable[..., int] | Walked | None  # None: no more than the node


class Version(NamedTuple):
    """One overload of a function: its types, what evaluates a call, and the cost of a call."""

    signature: Signature
    call: Implementation
    cost: Charge


class Function:
    """All versions of one function; `table` remembers which one takes which Python types."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.form: Callable[..., Code] | None = None
        self.versions: list[Version] = []
        self.table: dict[tuple[type, ...], tuple[Implementation, Charge]] = {}

    def __call__(self, meter: Meter, *args: Any) -> Any:
        """Return what the version for these values returns, and charge what it costs."""
        call, cost = self.table.get(tuple([type(arg) for arg in args])) or self.resolve(*args)
        if cost is None:
            return call(*args)
        if cost is WALKED:
            return call(meter, *args)
        meter.charge(cost(*args))
        return call(*args)

    def resolve(self, *args: Any) -> tuple[Implementation, Charge]:
        """Return call and cost of the version for these values, or raise cel-go's error."""
        names = [type_name(value) for value in args]
        for version in self.versions:
            types = version.signature.types(len(args))
            if types is not None and all(map(Type.may_be, types, names)):
                # Of a variadic one there are as many types as there are lists of arguments.
                if not version.signature.is_variadic:
                    self.table[tuple(map(type, args))] = version[1:]
                return version[1:]
        if self.name == "flatten":  # has words of its own
            shown = [_WITH_PARAMETERS.get(name, name) for name in names]
            raise no_overload(f"{shown[0]}.flatten({', '.join(shown[1:])})")
        if self.name not in _BY_TRAIT:
            raise no_overload(
                "" if self.name in _WITHOUT_TEXT else f"{self.name}({', '.join(names)})"
            )
        firsts = {version.signature.params[0].name for version in self.versions}
        raise no_overload("" if names[0] in _WITH_ALL_TRAITS | firsts else self.name)

    def code(self, args: list[Code]) -> Code:
        """Return the closure of a call, which chooses the version by the types of the arguments."""
        if self.form is not None:
            return self.form(*args)
        if len(args) == 2:  # as most calls; without a list of values a third faster
            table, resolve, (left, right) = self.table, self.resolve, args

            def binary(frame: Frame) -> Any:
                one, two = left(frame), right(frame)
                call, cost = table.get((type(one), type(two))) or resolve(one, two)
                if cost is None:
                    return call(one, two)
                if cost is WALKED:
                    return call(frame[0], one, two)
                if units := cost(one, two):
                    frame[0].charge(units)
                return call(one, two)

            return binary

        return lambda frame: self(frame[0], *[arg(frame) for arg in args])


FUNCTIONS: dict[str, Function] = {}


def declare(*rows: Row) -> None:
    """Add functions to the table: signatures, what evaluates a call, and what it costs."""
    for signatures, call, cost in rows:
        for signature in parse_signatures(signatures):
            entry = FUNCTIONS.setdefault(signature.name, Function(signature.name))
            entry.versions.append(Version(signature, call, _computed(cost)))


def _computed(cost: Cost) -> Charge:
    if isinstance(cost, int):
        return (lambda *_: cost) if cost else None
    return cost


def declare_forms(*rows: FormRow) -> None:
    """Add operators that decide what of their operands is evaluated."""
    for signatures, form in rows:
        declare((signatures, form, NO_MORE))
        FUNCTIONS[parse_signatures(signatures)[0].name].form = form


def ordered(type_: str, cost: int) -> list[Row]:
    """Return the rows that compare values of a library's type, which Python can order."""
    return [
        (f"({type_}).isGreaterThan({type_}) -> bool", operator.gt, cost),
        (f"({type_}).isLessThan({type_}) -> bool", operator.lt, cost),
        (f"({type_}).compareTo({type_}) -> int", lambda one, two: (one > two) - (one < two), cost),
    ]


def succeeds(call: Callable[..., Any]) -> Callable[..., bool]:
    """Return the function that says whether `call` returns without an error."""
    return lambda *args: fault(call, *args) is None


def fault(call: Callable[..., Any], *args: Any) -> EvaluationError | None:
    """Return the error that a call ends with, if any."""
    try:
        call(*args)
    except EvaluationError as error:
        return error
    return None
