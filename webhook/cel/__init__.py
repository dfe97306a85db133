"""The Common Expression Language on decoded JSON: parser, checker, and compiler to closures.

Pure: no network, no clock, no generated source. `lexer` and `parser` make the nodes of `syntax`;
`compiler` checks them by the static `types`, tries `constants`, and makes Python `closures`.
`functions` is the table of what expressions may call, filled by `library`; `macros` has a table of
its own. `values` are decoded objects, and what JSON lacks. `program` evaluates, within the budget
of `cost`, and raises nothing but the `errors`. `reads` lists the fields that an expression reads.
`admission_environment` declares the names in expressions about a request, `attestations` those in
expressions about a signed statement.
"""

from webhook.cel.cost import BUDGET, Meter
from webhook.cel.errors import BudgetError, CelError, CompileError, EvaluationError
from webhook.cel.functions import Frame
from webhook.cel.program import Environment, Program, Variables
from webhook.cel.reads import Steps, fields_read

__all__ = [
    "BUDGET",
    "BudgetError",
    "CelError",
    "CompileError",
    "Environment",
    "EvaluationError",
    "Frame",
    "Meter",
    "Program",
    "Steps",
    "Variables",
    "fields_read",
]
