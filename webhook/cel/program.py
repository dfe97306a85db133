"""Compile expressions against declared variables, and evaluate them with values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from webhook.cel.compiler import Compiler
from webhook.cel.errors import CelError, CompileError, EvaluationError
from webhook.cel.functions import Code, Frame
from webhook.cel.parser import parse
from webhook.cel.types import Type

BUDGET = 100_000  # units of 0.1 to 0.3 us, for all expressions that share an activation


@dataclass(frozen=True, slots=True)
class Program:
    """A compiled expression: its text, the type of its result, and what evaluates it."""

    source: str
    type: Type
    code: Code
    blanks: tuple[None, ...]

    def evaluate(self, activation: Frame) -> Any:
        """Return the value.

        EvaluationError where it is an error, BudgetError where it costs too much.
        """
        try:
            return self.code([*activation, *self.blanks])
        except RecursionError:
            raise EvaluationError("nested too deeply") from None


@dataclass(frozen=True, slots=True)
class Environment:
    """What expressions can name: variables with their types, object types with their fields.

    `structs` allows `Object{…}` and `JSONPatch{…}`.
    """

    variables: Mapping[str, Type]
    objects: Mapping[str, Mapping[str, Type]] = field(default_factory=dict)
    structs: bool = False

    def compile(self, source: str, *results: str) -> Program:
        """Return the program of an expression whose result is of one of `results` (any, if none is given).

        CompileError names line and column.
        """
        try:
            compiler = Compiler(source, self)
            found, code = compiler.compile(parse(source))
        except RecursionError:
            raise CompileError(source, 0, "nested too deeply") from None
        if results and str(found) not in results:
            raise CompileError(
                source, 0, f"must evaluate to {' or '.join(results)} but got {found}"
            )
        return Program(source, found, code, (None,) * (compiler.size - len(self.variables) - 1))

    def activation(self, values: Mapping[str, Any], budget: list[int] | None = None) -> Frame:
        """Return the values to evaluate with, after a budget that they share.

        A variable without a value is null.

        By default the budget is a new one.
        """
        return [[BUDGET] if budget is None else budget, *map(values.get, self.variables)]


class Variables(dict[str, Any]):
    """Named expressions, each evaluated when it is first read; an error is remembered too."""

    def __init__(self, programs: Mapping[str, Program]) -> None:
        super().__init__()
        self.programs = programs
        self.errors: dict[str, CelError] = {}
        self.activation: Frame = []

    def __missing__(self, name: str) -> Any:
        if name not in self.errors:
            try:
                found = self[name] = self.programs[name].evaluate(self.activation)
            except CelError as error:
                self.errors[name] = error
            else:
                return found
        raise self.errors[name]
