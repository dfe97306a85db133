"""Write CEL: literals, fields, conditions. Text is combined, never parsed."""

import json
import re
from collections.abc import Iterable
from typing import Any

from config.api.rules import RESERVED

IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Text, brackets, and && with the operators that bind less.
TOKEN = re.compile(r"""'(?:[^'\\]|\\.)*'|[()\[\]{}]| \|\| | \? | && """)


def literal(value: Any) -> str:
    """Return a constant as CEL."""
    if isinstance(value, str):
        return "'" + json.dumps(value, ensure_ascii=False)[1:-1].replace("'", r"\'") + "'"
    if isinstance(value, dict):
        pairs = zip(map(literal, value), _items(list(value.values())), strict=True)
        return "{" + ", ".join(f"{key}: {item}" for key, item in pairs) + "}"
    if isinstance(value, list):
        return f"[{', '.join(_items(value))}]"
    return json.dumps(value)


def _items(values: list[Any]) -> list[str]:
    """Return the constants of a list or a map, which CEL wants to be of one type."""
    is_mixed = len({_type(each) for each in values}) > 1
    return [f"dyn({literal(each)})" if is_mixed else literal(each) for each in values]


def _type(value: Any) -> str:
    if isinstance(value, dict | list):
        items = value.values() if isinstance(value, dict) else value
        types = {_type(each) for each in items}
        inner = types.pop() if len(types) == 1 else "dyn"
        return f"{type(value).__name__}({inner})"
    return type(value).__name__


def is_name(key: str) -> bool:
    """Return whether a key can be written after a dot."""
    return bool(IDENTIFIER.fullmatch(key)) and key not in RESERVED - {"namespace"}


def select(value: str, key: str) -> str:
    """Return the expression for a field of a value."""
    return f"{value}.{key}" if is_name(key) else f"{value}[{literal(key)}]"


def optional(value: str, key: str) -> str:
    """Return the expression for a field of a value, as an optional."""
    return f"{value}.?{key}" if is_name(key) else f"{value}[?{literal(key)}]"


def present(value: str, key: str) -> str:
    """Return the test that a value has a field."""
    return f"has({value}.{key})" if is_name(key) else f"{literal(key)} in {value}"


def parenthesise(text: str) -> str:
    """Return an expression that can be an operand of &&."""
    depth = 0
    for mark in TOKEN.findall(text):
        depth += (mark in "([{") - (mark in ")]}")
        if depth == 0 and mark in (" || ", " ? "):
            return f"({text})"
    return text


def every(parts: Iterable[str]) -> str:
    """Return the conjunction of expressions."""
    kept = [each for each in dict.fromkeys(parts) if each != "true"]
    if "false" in kept:
        return "false"
    return " && ".join(map(parenthesise, kept) if len(kept) > 1 else kept) or "true"


def conjuncts(text: str) -> list[str]:
    """Return the operands of an expression's outer &&, without their brackets; else the whole."""
    depth, start, parts = 0, 0, list[str]()
    for mark in TOKEN.finditer(text):
        depth += (mark[0] in "([{") - (mark[0] in ")]}")
        if depth == 0 and mark[0] in (" || ", " ? "):
            return [text]
        if depth == 0 and mark[0] == " && ":
            parts.append(text[start : mark.start()])
            start = mark.end()
    return [without_brackets(each) for each in (*parts, text[start:])]


def without_brackets(text: str) -> str:
    """Return an expression without the brackets that are around all of it."""
    depth = 0
    for mark in TOKEN.finditer(text):
        depth += (mark[0] in "([{") - (mark[0] in ")]}")
        if depth == 0 and mark.end() < len(text):
            return text
    return text[1:-1] if text.startswith("(") else text


def some(parts: Iterable[str]) -> str:
    """Return the disjunction of expressions."""
    kept = [each for each in dict.fromkeys(parts) if each != "false"]
    return "true" if "true" in kept else " || ".join(kept) or "false"


def negate(text: str) -> str:
    """Return the negation of an expression."""
    if text in ("true", "false"):
        return "false" if text == "true" else "true"
    simple = re.fullmatch(r"!?[\w.]+(\([^()]*\))?", text)
    if simple:
        return text[1:] if text.startswith("!") else f"!{text}"
    return f"!({text})"


def glob(value: str, pattern: str) -> str:
    """Return the test that a string matches a pattern with * and ?."""
    stripped = pattern.strip("*")
    if "*" not in stripped and "?" not in stripped:
        if not stripped:
            return "true" if pattern else f"{value} == ''"
        word, ends = literal(stripped), (pattern[0] == "*", pattern[-1] == "*")
        if any(ends):
            call = {(True, True): "contains", (False, True): "startsWith"}.get(ends, "endsWith")
            return f"{value}.{call}({word})"
        return f"{value} == {word}"
    if pattern == "?*":
        return f"{value} != ''"
    regex = "".join({"*": ".*", "?": "."}.get(each) or re.escape(each) for each in pattern)
    return f"{value}.matches({literal(f'(?s)^{regex}$')})"


def any_glob(value: str, patterns: Iterable[str]) -> str:
    """Return the test that a string matches one of several patterns with * and ?."""
    plain, wild = list[str](), list[str]()
    for pattern in patterns:
        (wild if "*" in pattern or "?" in pattern else plain).append(pattern)
    named = [f"{value} in {literal(plain)}"] if plain else []
    return some([*named, *(glob(value, each) for each in wild)])
