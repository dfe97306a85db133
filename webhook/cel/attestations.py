"""CEL about the predicate of an attestation."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from webhook.cel.errors import CelError
from webhook.cel.program import Environment, Program
from webhook.cel.types import parse_type

ATTESTATION = Environment({"predicate": parse_type("dyn")})


@lru_cache(maxsize=256)
def compiled(expression: str) -> Program:
    """Compile a condition. CompileError, a ValueError, names line and column."""
    return ATTESTATION.compile(expression, "bool")


def is_true(expression: str, predicate: Mapping[str, Any]) -> bool:
    """Return whether a condition is true; one that fails is not."""
    values = ATTESTATION.activation({"predicate": predicate})
    try:
        return compiled(expression).evaluate(values) is True
    except CelError:
        return False
