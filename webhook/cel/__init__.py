"""The Common Expression Language on decoded JSON: a parser, a checker and a compiler to Python closures.

Pure: no network, no clock, no generated source. Values are the decoded objects themselves (see
`values`); functions are those of cel-go and Kubernetes (see `library`). An evaluation has a budget,
and raises nothing but `CelError`.
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
