"""The table of functions: types, cost and implementation of what expressions may call."""

import operator
from collections.abc import Callable
from typing import Any, NamedTuple

from webhook.cel.cost import NO_MORE, WALKED, Cost, Meter, Walked
from webhook.cel.errors import EvaluationError, no_overload
from webhook.cel.types import Signature, Type, parse_signatures
from webhook.cel.values import type_name

# The values of an evaluation: its meter, the declared variables in order, then those of macros.
Frame = list[Any]
Code = Callable[[Frame], Any]
Implementation = Callable[..., Any]
Row = tuple[str, Implementation, Cost]
# Operators that may skip operands: a form takes closures and returns one, which costs only its
# nodes.
FormRow = tuple[str, Callable[..., Code]]

# As in cel-go, these check a trait of the first operand, and their name is in the error only if the
# operand lacks it.
_BY_TRAIT = frozenset(
    ["_<_", "_<=_", "_>_", "_>=_", "_+_", "_-_", "_*_", "_/_", "_%_", "-_", "size", "sort"]
)
_WITH_ALL_TRAITS = frozenset({"string", "google.protobuf.Timestamp", "google.protobuf.Duration"})
_WITHOUT_TEXT = frozenset(
    ["!_", "@in", "contains", "startsWith", "endsWith", "matches", "find", "findAll"]
)
_WITH_PARAMETERS = {"list": "list(dyn)", "map": "map(dyn, dyn)"}


Charge = Callable[..., int] | Walked | None  # None: only the unit of the node


class Version(NamedTuple):
    """One overload of a function: its types, its implementation, and its cost."""

    signature: Signature
    call: Implementation
    cost: Charge


class Function:
    """All overloads of one function; `table` caches the overload by the arguments' Python types."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.form: Callable[..., Code] | None = None
        self.versions: list[Version] = []
        self.table: dict[tuple[type, ...], tuple[Implementation, Charge]] = {}

    def __call__(self, meter: Meter, *args: Any) -> Any:
        """Call the overload for these values, and charge its cost."""
        call, cost = self.table.get(tuple([type(arg) for arg in args])) or self.resolve(*args)
        if cost is None:
            return call(*args)
        if cost is WALKED:
            return call(meter, *args)
        meter.charge(cost(*args))
        return call(*args)

    def resolve(self, *args: Any) -> tuple[Implementation, Charge]:
        """Return implementation and cost of the overload for these values; or raise no_overload."""
        names = [type_name(value) for value in args]
        for version in self.versions:
            types = version.signature.types(len(args))
            if types is not None and all(map(Type.may_be, types, names)):
                # A variadic overload has any number of type combinations, so it is not cached.
                if not version.signature.is_variadic:
                    self.table[tuple(map(type, args))] = version[1:]
                return version[1:]
        if self.name == "flatten":  # it has its own error message
            shown = [_WITH_PARAMETERS.get(name, name) for name in names]
            raise no_overload(f"{shown[0]}.flatten({', '.join(shown[1:])})")
        if self.name not in _BY_TRAIT:
            raise no_overload(
                "" if self.name in _WITHOUT_TEXT else f"{self.name}({', '.join(names)})"
            )
        firsts = {version.signature.params[0].name for version in self.versions}
        raise no_overload("" if names[0] in _WITH_ALL_TRAITS | firsts else self.name)

    def code(self, args: list[Code]) -> Code:
        """Return the closure of a call, which chooses the overload by the arguments' types."""
        if self.form is not None:
            return self.form(*args)
        if len(args) == 2:  # the common case; a third faster without a list of values
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
    """Add functions to the table: signatures, implementation and cost."""
    for signatures, call, cost in rows:
        for signature in parse_signatures(signatures):
            entry = FUNCTIONS.setdefault(signature.name, Function(signature.name))
            entry.versions.append(Version(signature, call, _compute(cost)))


def _compute(cost: Cost) -> Charge:
    if isinstance(cost, int):
        return (lambda *_: cost) if cost else None
    return cost


def declare_forms(*rows: FormRow) -> None:
    """Add operators that may skip operands."""
    for signatures, form in rows:
        declare((signatures, form, NO_MORE))
        FUNCTIONS[parse_signatures(signatures)[0].name].form = form


def declare_order(type_: str, cost: int) -> list[Row]:
    """Return the rows that compare values of a library's type, which Python can order."""
    return [
        (f"({type_}).isGreaterThan({type_}) -> bool", operator.gt, cost),
        (f"({type_}).isLessThan({type_}) -> bool", operator.lt, cost),
        (f"({type_}).compareTo({type_}) -> int", lambda one, two: (one > two) - (one < two), cost),
    ]


def succeeds(call: Callable[..., Any]) -> Callable[..., bool]:
    """Return a function that returns whether `call` succeeds."""
    return lambda *args: fault(call, *args) is None


def fault(call: Callable[..., Any], *args: Any) -> EvaluationError | None:
    """Return the error that a call raises, or None."""
    try:
        call(*args)
    except EvaluationError as error:
        return error
    return None
