"""Render the values of an AppConfig: Jinja2 templates restricted to variables and a few filters.

A template is parsed but never compiled or run: this module walks its tree, and any node other than
text, a known variable, one of `FILTERS` and a choice by a variable (`"a" if environment == "dev"
else "b"`) is an error. So there are no loops, calls, attributes or arithmetic. Everything that can
grow is limited: the tokens between braces, the arguments of filters, and the result.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Environment, nodes

FILTERS = {
    "capitalize": (0,),
    "lower": (0,),
    "replace": (2,),
    "title": (0,),
    "trim": (0, 1),
    "upper": (0,),
}
MARKS = ("{{", "{%", "{#")
MAX_TOKENS = 4_000  # for all values together: tokens between braces
MAX_ARGUMENT = 256  # characters
MAX_RESULT = 4_096  # characters of a filter's input


class TemplateError(ValueError):
    """A value cannot be rendered; the message has the reason."""


def render_values(
    values: Mapping[str, str], variables: Mapping[str, str]
) -> tuple[dict[str, str], list[tuple[str, str]]]:
    """Return the values that could be rendered, and the errors of the others, each with its key.

    Errors are in the order of keys, so that the first one is deterministic.
    """
    done: dict[str, str] = {}
    faults: list[tuple[str, str]] = []
    allowance = iter(range(MAX_TOKENS))
    for key, value in sorted(values.items()):
        if not any(mark in value for mark in MARKS):
            done[key] = value
            continue
        try:
            _count(value, allowance)
            done[key] = _render(value, variables)
        except TemplateError as error:
            faults.append((key, str(error)))
    return done, faults


def _count(value: str, allowance: Iterator[int]) -> None:
    """Subtract the tokens between braces from the allowance.

    Raises TemplateError if it is exhausted.
    """
    from jinja2 import TemplateSyntaxError

    try:
        for _, kind, _ in _environment().lex(value):
            if kind != "data" and next(allowance, None) is None:
                raise TemplateError(
                    f"all templates together have more than {MAX_TOKENS} tokens; use fewer"
                )
    except TemplateSyntaxError as error:
        raise TemplateError(f"line {error.lineno}: {(error.message or '').rstrip('.')}") from None


def _render(value: str, variables: Mapping[str, str]) -> str:
    from jinja2 import TemplateSyntaxError, nodes

    try:
        tree = _environment().parse(value)
    except TemplateSyntaxError as error:
        raise TemplateError(f"line {error.lineno}: {(error.message or '').rstrip('.')}") from None
    except RecursionError:
        raise TemplateError("nested too deeply") from None
    except ValueError:
        raise TemplateError("a number is too long") from None
    parts: list[str] = []
    for statement in tree.body:
        if not isinstance(statement, nodes.Output):
            raise _refuse(statement)
        parts += (_expression(node, variables) for node in statement.nodes)
    return "".join(parts)


def _expression(node: "nodes.Expr", variables: Mapping[str, str]) -> str:
    """Return the value of text, a variable, a variable with filters, or a choice among these.

    The alternatives that are not chosen must be valid, too: another environment chooses them.
    """
    from jinja2 import nodes

    chosen = ""
    pending: list[tuple[nodes.Expr | None, bool]] = [(node, True)]
    while pending:
        alternative, is_chosen = pending.pop()
        if isinstance(alternative, nodes.CondExpr):
            holds = _holds(alternative.test, variables)
            pending.append((alternative.expr1, is_chosen and holds))
            pending.append((alternative.expr2, is_chosen and not holds))
            continue
        value = "" if alternative is None else _alternative(alternative, node, variables)
        if is_chosen:
            chosen = value
    return chosen


def _alternative(node: "nodes.Expr", whole: "nodes.Expr", variables: Mapping[str, str]) -> str:
    """Return the value of one alternative; a text is one only in a choice."""
    from jinja2 import nodes

    if isinstance(node, nodes.Const) and isinstance(node.value, str) and node is not whole:
        return node.value
    return _filtered_variable(node, variables)


def _holds(test: "nodes.Expr", variables: Mapping[str, str]) -> bool:
    """Return whether a variable equals a text, or differs from it."""
    from jinja2 import nodes

    match test:
        case nodes.Compare(
            expr=nodes.Name() as name,
            ops=[nodes.Operand(op="eq" | "ne" as operator, expr=nodes.Const(value=str(text)))],
        ):
            return (_variable(name, variables) == text) is (operator == "eq")
    raise _refuse(test)


def _variable(name: "nodes.Name", variables: Mapping[str, str]) -> str:
    if name.name not in variables:
        raise TemplateError(
            f'line {name.lineno}: undefined variable "{name.name}"; known variables: '
            f"{_list(variables)}"
        )
    return variables[name.name]


def _filtered_variable(node: "nodes.Expr", variables: Mapping[str, str]) -> str:
    """Return the value of text, a variable, or a variable with filters."""
    from jinja2 import nodes

    filters: list[nodes.Filter] = []
    inner: nodes.Expr | None = node
    while isinstance(inner, nodes.Filter):
        filters.append(inner)
        inner = inner.node
    if isinstance(inner, nodes.TemplateData) and not filters:
        return inner.data
    if not isinstance(inner, nodes.Name):
        raise _refuse(inner or node)
    value = _variable(inner, variables)
    for filter in reversed(filters):
        value = _filter(filter, value)
    return value


def _filter(node: "nodes.Filter", value: str) -> str:
    """Return a value after applying one filter."""
    from jinja2.nodes import EvalContext

    arguments = list(_arguments(node))
    if len(arguments) not in FILTERS.get(node.name, ()):
        reason = f"is not one of {_list(FILTERS)}"
        if takes := FILTERS.get(node.name):
            reason = f"takes {' or '.join(map(str, takes))} arguments"
        raise TemplateError(f'line {node.lineno}: filter "{node.name}" {reason}')
    if len(value) > MAX_RESULT:
        raise TemplateError(
            f"line {node.lineno}: its filters produce more than {MAX_RESULT} characters"
        )
    environment = _environment()
    return str(
        environment.call_filter(node.name, value, arguments, eval_ctx=EvalContext(environment))
    )


def _arguments(node: "nodes.Filter") -> Iterator[str]:
    from jinja2 import nodes

    if odd := next(filter(None, (*node.kwargs, node.dyn_args, node.dyn_kwargs)), None):
        raise _refuse(odd)
    for argument in node.args:
        if not isinstance(argument, nodes.Const) or not isinstance(argument.value, str):
            raise _refuse(argument)
        if len(argument.value) > MAX_ARGUMENT:
            raise TemplateError(
                f"line {node.lineno}: an argument has more than {MAX_ARGUMENT} characters"
            )
        yield argument.value


def _refuse(node: "nodes.Node") -> TemplateError:
    what = type(node).__name__
    return TemplateError(
        f"line {node.lineno}: {what} is not allowed; use only variables, filters with text "
        "arguments, and choices by a variable"
    )


def _list(names: Mapping[str, object]) -> str:
    return ", ".join(sorted(names))


@cache
def _environment() -> "Environment":
    """Return the template parser; imported on first use because it takes 8 MB."""
    from jinja2 import Environment

    return Environment(keep_trailing_newline=True)  # noqa: S701
