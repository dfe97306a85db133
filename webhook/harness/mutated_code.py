"""Mutants of a policy's Python module: each comparison, `and` and `or` in its functions, changed one at a time."""

import ast
import inspect
import sys
from collections.abc import Iterator
from functools import partial
from types import ModuleType

from webhook.engine import Policy
from webhook.harness.mutant import Mutant
from webhook.harness.subject import Subject
from webhook.policy_sets.policy_set import Catalogue

SWAPPED: dict[str, tuple[str, type[ast.AST]]] = {
    "Lt": ("< changed to <=", ast.LtE),
    "LtE": ("<= changed to <", ast.Lt),
    "Gt": ("> changed to >=", ast.GtE),
    "GtE": (">= changed to >", ast.Gt),
    "Eq": ("== changed to !=", ast.NotEq),
    "NotEq": ("!= changed to ==", ast.Eq),
    "In": ("in changed to not in", ast.NotIn),
    "NotIn": ("not in changed to in", ast.In),
    "Is": ("is changed to is not", ast.IsNot),
    "IsNot": ("is not changed to is", ast.Is),
    "And": ("and changed to or", ast.Or),
    "Or": ("or changed to and", ast.And),
}


def of_module(policy: Policy) -> Iterator[Mutant]:
    """Yield the mutants of the module that declares a policy."""
    function = policy.validate or policy.mutate
    module = sys.modules[function.__module__]
    source = inspect.getsource(module)
    for number in range(len(list(_places(ast.parse(source))))):
        tree = ast.parse(source)
        description = _swap(*list(_places(tree))[number])
        yield Mutant(
            policy.name, f"{module.__name__.rpartition('.')[2]}.py:{description}", partial(_changed, tree, module)
        )


def _changed(tree: ast.Module, module: ModuleType, subject: Subject, catalogue: Catalogue) -> tuple[Subject, Catalogue]:
    changed = ModuleType(module.__name__, module.__doc__)
    changed.__file__, changed.__package__ = module.__file__, module.__package__
    exec(compile(tree, str(module.__file__), "exec"), changed.__dict__)  # noqa: S102  the policy's own source
    policy: Policy = changed.POLICY
    return subject, {**catalogue, policy.name: policy}


def _places(tree: ast.Module) -> Iterator[tuple[ast.Compare | ast.BoolOp, int]]:
    """Yield the operators that can be swapped in the functions of a module: the node and the operator's index."""
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    for node in (node for function in functions for node in ast.walk(function)):
        if isinstance(node, ast.Compare):
            yield from ((node, index) for index in range(len(node.ops)))
        elif isinstance(node, ast.BoolOp):
            yield node, 0


def _swap(node: ast.Compare | ast.BoolOp, index: int) -> str:
    """Swap one operator; return its line and a description."""
    old: ast.AST = node.ops[index] if isinstance(node, ast.Compare) else node.op
    words, new = SWAPPED[type(old).__name__]
    if isinstance(node, ast.Compare):
        node.ops[index] = new()  # type: ignore[call-overload]
    else:
        node.op = new()  # type: ignore[assignment]
    return f"{node.lineno}: {words}"
