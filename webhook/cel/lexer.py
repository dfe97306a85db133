"""Tokens of the Common Expression Language (https://github.com/google/cel-spec/blob/master/doc/langdef.md#syntax)."""

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from webhook.cel.errors import CompileError
from webhook.cel.values import MAX_INT, MAX_UINT, Uint

MAX_SOURCE = 16_384  # characters, the limit of the API server for an expression that it compiles

_TOKEN = re.compile(
    r"""
    (?P<space>(?:[ \t\r\n\f]|//[^\n]*)+)
    |(?P<string>(?:(?P<raw>[rR][bB]?|[bB][rR])|(?P<bytes>[bB]?))(?P<quote>\"{3}|'{3}|[\"'])
        (?P<body>(?(raw).*?|(?:[^\\]|\\.)*?))(?P=quote))
    |(?P<double>[0-9]*\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+)
    |(?P<int>(?:0x[0-9a-fA-F]+|[0-9]+)[uU]?)
    |(?P<name>[_a-zA-Z][_a-zA-Z0-9]*)
    |`(?P<escaped>[a-zA-Z0-9_.\-/ ]+)`
    |(?P<mark>&&|\|\||[<>=!]=|[-+*/%<>!?:.,()\[\]{}])
    """,
    re.VERBOSE | re.DOTALL,
)
_SURROGATE = re.compile("[\ud800-\udfff]")
_ESCAPE = re.compile(
    r"\\(?:(?P<plain>[abfnrtv\\?\"'`])|[xX](?P<hex>[0-9a-fA-F]{2})|(?P<octal>[0-3][0-7]{2})"
    r"|(?P<unicode>u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})|.?)",
    re.DOTALL,
)
_CONSTANTS = {"true": True, "false": False, "null": None}
_PLAIN = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


class Token(NamedTuple):
    """A token: its kind ("name", "literal", … or the mark itself), position, text and value."""

    sort: str
    at: int
    text: str
    value: Any = None


def tokens(source: str) -> list[Token]:
    """Return an expression's tokens; the last one is "end".

    Raises CompileError for invalid text.
    """
    if len(source) > MAX_SOURCE:
        raise CompileError(
            source, 0, f"expression of {len(source)} characters; at most {MAX_SOURCE} are allowed"
        )
    if surrogate := _SURROGATE.search(source):
        raise CompileError(source, surrogate.start(), "syntax error: half of a surrogate pair")
    lexed, at = [], 0
    while at < len(source):
        match = _TOKEN.match(source, at)
        if match is None or (
            match["quote"] in {"'", '"'} and not {"\n", "\r"}.isdisjoint(match["body"])
        ):
            raise CompileError(source, at, f"syntax error: unexpected character {source[at]!r}")
        sort, text = str(match.lastgroup), match.group()
        if read := _VALUES.get(sort):
            lexed.append(Token("literal", at, text, read(match)))
        elif text in _CONSTANTS:
            lexed.append(Token("literal", at, text, _CONSTANTS[text]))
        elif sort != "space":
            is_mark = sort == "mark" or text == "in"
            lexed.append(Token(text if is_mark else sort, at, match.group(sort)))
        at = match.end()
    return [*lexed, Token("end", len(source), "end of expression")]


def _integer(match: re.Match[str]) -> int:
    text = match.group()
    digits = text.rstrip("uU")
    base = 16 if digits.startswith("0x") else 10
    value = int(digits, base) if len(digits) <= 24 else MAX_UINT + 1
    if value > (MAX_INT + 1 if digits == text else MAX_UINT):
        raise CompileError(match.string, match.start(), f"{text}: integer out of range")
    return value if digits == text else Uint(value)


def _text(match: re.Match[str]) -> str | bytes:
    is_bytes = "b" in (match["raw"] or match["bytes"]).lower()

    def unescape(escape: re.Match[str]) -> str:
        if escape["plain"]:
            return _PLAIN.get(escape["plain"], escape["plain"])
        digits = escape["hex"] or (escape["unicode"] or "")[1:]
        code = int(escape["octal"], 8) if escape["octal"] else int(digits or "-1", 16)
        is_character = 0 <= code < 0xD800 or 0xDFFF < code <= 0x10FFFF
        if not is_character or (escape["unicode"] and is_bytes):
            text = f"invalid escape sequence {escape.group()!r}"
            raise CompileError(match.string, match.start(), text)
        # Surrogates carry single bytes through `str`, as Python's own "surrogateescape" does.
        return chr(0xDC00 + code) if is_bytes and code > 0x7F else chr(code)

    text = match["body"] if match["raw"] else _ESCAPE.sub(unescape, match["body"])
    return text.encode("utf-8", "surrogateescape") if is_bytes else text


_VALUES: dict[str, Callable[[re.Match[str]], Any]] = {
    "string": _text,
    "double": lambda match: float(match.group()),
    "int": _integer,
}
