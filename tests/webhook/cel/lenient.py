"""Compiles as cel-spec does, unlike the API server: mixed lists are allowed, and type errors occur at run time."""

from typing import Any

from webhook.cel import CompileError, Environment, EvaluationError, Program
from webhook.cel.compiler import Compiler, Typed
from webhook.cel.functions import Code
from webhook.cel.parser import parse
from webhook.cel.syntax import Node
from webhook.cel.types import DYN


class Unchecked(Compiler):
    """A compiler for which every type is dyn, and every error occurs at run time."""

    def compile(self, node: Node) -> Typed:
        """Return the closure of `node`, or one that raises."""
        try:
            return DYN, super().compile(node)[1]
        except CompileError as error:
            return DYN, _raising(error.text)

    def _try_constants(self, function: str, operands: list[Node]) -> None:
        """Report errors in constants at run time."""


def _raising(text: str) -> Code:
    def raised(_: Any) -> Any:
        raise EvaluationError(text)

    return raised


def compiled(source: str, environment: Environment, *, checked: bool = True) -> Program:
    """Return the program of an expression. Raises CompileError if it is checked and invalid."""
    compiler = (Compiler if checked else Unchecked)(source, environment)
    compiler.homogeneous = False
    try:
        type_, code = compiler.compile(parse(source))
    except RecursionError:
        raise CompileError(source, 0, "nested too deeply") from None
    return Program(
        source,
        type_,
        code,
        compiler.nodes,
        (None,) * (compiler.size - len(environment.variables) - 1),
    )
