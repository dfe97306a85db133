"""The Common Expression Language on decoded JSON: parser, checker, and compiler to closures.

Pure: no network, no clock, no generated source. `lexer` and `parser` build the tree of `syntax`
nodes; `compiler` checks them with the static `types`, evaluates `constants`, and compiles them to
Python `closures`. `functions` is the table of functions, filled by `library`; `macros` is the table
of macros. `values` represents CEL's values in Python. `program` evaluates an expression within the
budget of `cost`, and raises only the `errors`. `reads` lists the fields that an expression reads.
`admission_environment` declares the variables of expressions about a request, `attestations` those
of expressions about a signed statement.
"""

from webhook.cel.cost import BUDGET, Meter
from webhook.cel.errors import (
    BudgetError,
    CelError,
    CompileError,
    EvaluationError,
    UndefinedFieldError,
)
from webhook.cel.functions import Frame
from webhook.cel.program import Environment, Program, Variables
from webhook.cel.reads import PRESENCE, Steps, field_named, fields_read

__all__ = [
    "BUDGET",
    "PRESENCE",
    "BudgetError",
    "CelError",
    "CompileError",
    "Environment",
    "EvaluationError",
    "Frame",
    "Meter",
    "Program",
    "Steps",
    "UndefinedFieldError",
    "Variables",
    "field_named",
    "fields_read",
]
