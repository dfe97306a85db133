"""Compile expressions against declared variables, and evaluate them with values."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from webhook.cel.compiler import Compiler
from webhook.cel.cost import Meter
from webhook.cel.errors import BudgetError, CelError, CompileError, EvaluationError
from webhook.cel.functions import Code, Frame
from webhook.cel.parser import parse
from webhook.cel.types import Declarations, Type


@dataclass(frozen=True, slots=True)
class Program:
    """A compiled expression: its source, its result type, and its closure."""

    source: str
    type: Type
    code: Code
    nodes: int  # the minimum cost of an evaluation
    blanks: tuple[None, ...]  # slots for the variables of macros

    def evaluate(self, activation: Frame) -> Any:
        """Return the value. Raises EvaluationError, or BudgetError if it costs too much."""
        activation[0].charge(self.nodes)
        try:
            return self.code([*activation, *self.blanks])
        except RecursionError:
            raise EvaluationError("nested too deeply") from None


@dataclass(frozen=True, slots=True)
class Environment(Declarations):
    """The declared variables of expressions; compiles them."""

    def compile(self, source: str, *results: str) -> Program:
        """Compile an expression whose type is one of `results`.

        Raises CompileError with the position.
        """
        compiler = Compiler(source, self)
        errors = compiler.undefined
        try:
            result, code = compiler.compile(parse(source))
            if results and str(result) not in results and not errors:
                text = f"must evaluate to {' or '.join(results)} but got {result}"
                if str(result) == "dyn" and results == ("bool",):
                    text += ", whose type is known only when it runs; compare it: (…) == true"
                raise CompileError(source, 0, text)
        except RecursionError:
            raise CompileError(source, 0, "nested too deeply") from None
        except CompileError as error:
            errors.append(error)
        if errors:
            first, *others = errors
            first.also = tuple(others)
            raise first
        blanks = (None,) * (compiler.size - len(self.variables) - 1)
        return Program(source, result, code, compiler.nodes, blanks)

    def activation(self, values: Mapping[str, Any], meter: Meter | None = None) -> Frame:
        """Return a frame with the meter and the values of the variables.

        A variable without a value is null. The meter has a full budget by default.
        """
        return [meter or Meter(), *map(values.get, self.variables)]


class Variables(dict[str, Any]):
    """Named expressions, each evaluated when it is first read; results and errors are cached."""

    def __init__(self, programs: Mapping[str, Program]) -> None:
        super().__init__()
        self.programs = programs
        self.errors: dict[str, CelError] = {}
        self.activation: Frame = []

    def __missing__(self, name: str) -> Any:
        if name not in self.errors:
            try:
                value = self[name] = self.programs[name].evaluate(self.activation)
            except BudgetError:
                raise
            except CelError as error:
                text = f'composited variable "{name}" fails to evaluate: {error}'
                self.errors[name] = EvaluationError(text)
            else:
                return value
        raise self.errors[name].with_traceback(None)
