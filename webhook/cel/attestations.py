"""CEL about the predicate of an attestation."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from webhook.cel.errors import CelError, CompileError
from webhook.cel.program import Environment, Program
from webhook.cel.types import parse_type

ATTESTATION = Environment({"predicate": parse_type("dyn")})


@lru_cache(maxsize=256)
def compile_condition(expression: str) -> Program:
    """Compile a condition. Raises ValueError, with line and column, if it is invalid."""
    try:
        return ATTESTATION.compile(expression, "bool")
    except CompileError as error:
        raise ValueError(f"line {error.line}, column {error.column}: {error.text}") from None


def is_true(expression: str, predicate: Mapping[str, Any]) -> bool:
    """Return whether a condition is true; one that fails is not."""
    values = ATTESTATION.activation({"predicate": predicate})
    try:
        return compile_condition(expression).evaluate(values) is True
    except CelError:
        return False
