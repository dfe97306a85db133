"""Mutants of CEL expressions: each comparison, `&&`, `||`, `!` and literal changed in turn."""

from collections.abc import Iterator, Mapping
from typing import Any

from kube.resource import FieldPath
from webhook.cel.errors import line_and_column
from webhook.cel.lexer import Token, tokens

# The fields of a spec that hold expressions.
RULES = ("variables", "matchConditions", "validations", "mutations")
EXPRESSIONS = frozenset({"expression", "messageExpression"})
SWAPPED = {
    "<": "<=",
    "<=": "<",
    ">": ">=",
    ">=": ">",
    "==": "!=",
    "!=": "==",
    "&&": "||",
    "||": "&&",
    "!": "",
}
SWAPPED |= {"true": "false", "false": "true"}


def changed_expressions(spec: Mapping[str, Any]) -> Iterator[tuple[FieldPath, str, str]]:
    """Yield each change: the expression's path, a description, and the new expression."""
    rules = {field: spec[field] for field in RULES if field in spec}
    for path, source in _expressions(rules, ()):
        field = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)[1:]
        for token in tokens(source):
            line, column = line_and_column(source, token.at)
            for text in _replacements(token):
                changed = f"{source[: token.at]}{text}{source[token.at + len(token.text) :]}"
                what = f"changed to {text}" if text else "left out"
                yield path, f"{field}:{line}:{column}: {token.text} {what}", changed


def _expressions(value: Any, path: FieldPath) -> Iterator[tuple[FieldPath, str]]:
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
        if key in EXPRESSIONS:
            yield (*path, key), inner
        elif isinstance(inner, dict | list):
            yield from _expressions(inner, (*path, key))


def _replacements(token: Token) -> Iterator[str]:
    if token.sort != "escaped" and token.text in SWAPPED:
        yield SWAPPED[token.text]
    elif isinstance(token.value, str | bytes):
        prefix = "b" if isinstance(token.value, bytes) else ""
        yield f"{prefix}''" if token.value else f"{prefix}'x'"
    elif token.value is not None:
        suffix = token.text[-1] if token.text[-1] in "uU" else ""
        yield from (f"{token.value + step}{suffix}" for step in (1, -1) if token.value + step >= 0)
