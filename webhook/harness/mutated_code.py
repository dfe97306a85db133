"""Mutants of Python policies: each comparison, `and`, `or`, `not` and number changed in turn."""

import ast
import inspect
import sys
from collections.abc import Callable, Iterator
from functools import partial
from types import ModuleType
from typing import Any

from webhook.engine import Policy

SWAPPED: dict[type[Any], tuple[str, type[Any]]] = {
    ast.Lt: ("< changed to <=", ast.LtE),
    ast.LtE: ("<= changed to <", ast.Lt),
    ast.Gt: ("> changed to >=", ast.GtE),
    ast.GtE: (">= changed to >", ast.Gt),
    ast.Eq: ("== changed to !=", ast.NotEq),
    ast.NotEq: ("!= changed to ==", ast.Eq),
    ast.In: ("in changed to not in", ast.NotIn),
    ast.NotIn: ("not in changed to in", ast.In),
    ast.Is: ("is changed to is not", ast.IsNot),
    ast.IsNot: ("is not changed to is", ast.Is),
    ast.And: ("and changed to or", ast.Or),
    ast.Or: ("or changed to and", ast.And),
}


def changed_policies(policy: Policy) -> Iterator[tuple[str, Policy | Exception]]:
    """Yield each change of a policy's module: a description, and the policy or its error.

    The description has line, column and the text of the line.
    """
    function = policy.validate or policy.mutate
    module = sys.modules[function.__module__]
    source = inspect.getsource(module)
    name, lines = f"{module.__name__.rpartition('.')[2]}.py", source.splitlines()
    for number in range(len(_changes(ast.parse(source)))):
        tree = ast.parse(source)
        line, column, what, change = _changes(tree)[number]
        change()
        description = f"{name}:{line}:{column + 1}: {what} in `{lines[line - 1].strip()}`"
        yield description, _policy(ast.fix_missing_locations(tree), module)


def _policy(tree: ast.Module, module: ModuleType) -> Policy | Exception:
    changed = ModuleType(module.__name__, module.__doc__)
    changed.__file__, changed.__package__ = module.__file__, module.__package__
    try:
        exec(compile(tree, str(module.__file__), "exec"), changed.__dict__)  # noqa: S102
    except Exception as error:  # noqa: BLE001
        return error
    policy: Policy = changed.POLICY
    return policy


def _changes(tree: ast.Module) -> list[tuple[int, int, str, Callable[[], None]]]:
    """Return line, column, description and function of each change in the functions of a module.

    Validators of parameters are not changed: a case with invalid parameters is an error.
    """
    functions = (
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and not _is_validator(node)
    )
    nodes = dict.fromkeys(
        node for function in functions for part in function.body for node in ast.walk(part)
    )
    placed = [node for node in nodes if isinstance(node, ast.expr)]
    return [(node.lineno, node.col_offset, *change) for node in placed for change in _of_node(node)]


def _is_validator(function: ast.FunctionDef) -> bool:
    return any("validator" in ast.unparse(each) for each in function.decorator_list)


def _of_node(node: ast.expr) -> Iterator[tuple[str, Callable[[], None]]]:
    match node:
        case ast.Compare(ops=operators):
            for index, operator in enumerate(operators):
                what, other = SWAPPED[type(operator)]
                yield what, partial(operators.__setitem__, index, other())
        case ast.BoolOp(op=operator):
            what, other = SWAPPED[type(operator)]
            yield what, partial(setattr, node, "op", other())
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield "not left out", partial(setattr, node, "operand", ast.UnaryOp(ast.Not(), operand))
        case ast.Constant(value=bool(value)):
            yield f"{value} changed to {not value}", partial(setattr, node, "value", not value)
        case ast.Constant(value=int(value)):
            yield f"{value} changed to {value + 1}", partial(setattr, node, "value", value + 1)
