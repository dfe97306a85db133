"""Mutants of the CEL expressions of a policy object: each comparison, `&&`, `||`, `!` and literal, changed in turn."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from webhook.cel.errors import line_and_column
from webhook.cel.lexer import Token, tokens
from webhook.harness.mutant import Mutant, in_spec

RULES = ("variables", "matchConditions", "validations", "mutations")  # the fields of a spec that hold expressions
EXPRESSIONS = frozenset({"expression", "messageExpression"})
SWAPPED = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "&&": "||", "||": "&&", "!": ""}
SWAPPED |= {"true": "false", "false": "true"}


def of_rules(index: int, value: Mapping[str, Any]) -> Iterator[Mutant]:
    """Yield the mutants of the policy object at `index`, by the line and column of what changes."""
    rules = {field: value["spec"][field] for field in RULES if field in value["spec"]}
    for path, source in _expressions(rules, ()):
        field = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)[1:]
        for token in tokens(source):
            line, column = line_and_column(source, token.at)
            for text in _replacements(token):
                changed = f"{source[: token.at]}{text}{source[token.at + len(token.text) :]}"
                what = f"changed to {text}" if text else "left out"
                yield Mutant(
                    value["metadata"]["name"],
                    f"{field}:{line}:{column}: {token.text} {what}",
                    in_spec(index, path, None, partial(_to, changed)),
                )


def _to(changed: str, _: Any) -> str:
    return changed


def _expressions(value: Any, path: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], str]]:
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
