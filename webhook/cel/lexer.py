"""Tokens of the Common Expression Language (https://github.com/google/cel-spec/blob/master/doc/langdef.md#syntax)."""

import re
from typing import Any, NamedTuple

from webhook.cel.errors import CompileError
from webhook.cel.values import MAX_INT, MAX_UINT, Uint

MAX_SOURCE = 16_384  # characters, the limit of the API server for an expression that it compiles

_TOKEN = re.compile(
    r"""
    (?P<space>(?:[ \t\r\n\f]|//[^\n]*)+)
    |(?P<string>(?:[rR][bB]?|[bB][rR]?)?(?:\"{3}(?:[^\\]|\\.)*?\"{3}|'{3}(?:[^\\]|\\.)*?'{3}
        |\"(?:[^\\"\r\n]|\\[^\r\n])*\"|'(?:[^\\'\r\n]|\\[^\r\n])*'))
    |(?P<double>[0-9]*\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+)
    |(?P<int>(?:0x[0-9a-fA-F]+|[0-9]+)[uU]?)
    |(?P<name>[_a-zA-Z][_a-zA-Z0-9]*)
    |`(?P<escaped>[a-zA-Z0-9_.\-/ ]+)`
    |(?P<mark>&&|\|\||[<>=!]=|[-+*/%<>!?:.,()\[\]{}])
    """,
    re.VERBOSE | re.DOTALL,
)
_SURROGATE = re.compile("[\ud800-\udfff]")
_RAW = re.compile(r"""([rR][bB]?|[bB][rR])("{3}|'{3}|"|')(.*)\2""", re.DOTALL)
_RAW_STRING = re.compile(r"""(?:[rR][bB]?|[bB][rR])(?:"{3}.*?"{3}|'{3}.*?'{3}|"[^"\r\n]*"|'[^'\r\n]*')""", re.DOTALL)
_ESCAPE = re.compile(
    r"\\(?:(?P<plain>[abfnrtv\\?\"'`])|[xX](?P<hex>[0-9a-fA-F]{2})|(?P<octal>[0-3][0-7]{2})"
    r"|u(?P<u4>[0-9a-fA-F]{4})|U(?P<u8>[0-9a-fA-F]{8})|(?P<bad>.?))",
    re.DOTALL,
)
_PLAIN = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


class Token(NamedTuple):
    """A token: its sort ("name", "escaped", "mark", "literal" or "end"), where it begins, and its text or value."""

    sort: str
    at: int
    text: str
    value: Any = None


def tokens(source: str) -> list[Token]:
    """Return the tokens of an expression, the last of sort "end". CompileError where there is none."""
    if len(source) > MAX_SOURCE:
        raise CompileError(source, 0, f"expression of {len(source)} characters; at most {MAX_SOURCE} are allowed")
    if surrogate := _SURROGATE.search(source):
        raise CompileError(source, surrogate.start(), "syntax error: half of a surrogate pair")
    found, at = [], 0
    while at < len(source):
        match = _RAW_STRING.match(source, at) or _TOKEN.match(source, at)
        if match is None:
            raise CompileError(source, at, f"syntax error: unexpected character {source[at]!r}")
        sort, text = match.lastgroup or "string", match.group()
        if sort in {"string", "double", "int"}:
            found.append(Token("literal", at, text, _value(source, at, sort, text)))
        elif sort != "space":
            found.append(Token(sort, at, match.group(sort)))
        at = match.end()
    return [*found, Token("end", len(source), "end of expression")]


def _value(source: str, at: int, sort: str, text: str) -> Any:
    if sort == "double":
        return float(text)
    if sort == "int":
        digits = text.rstrip("uU")
        value = int(digits, 16 if digits.startswith("0x") else 10) if len(digits) <= 24 else MAX_UINT + 1
        if value > (MAX_INT + 1 if digits == text else MAX_UINT):
            raise CompileError(source, at, f"{text}: integer out of range")
        return value if digits == text else Uint(value)
    if raw := _RAW.fullmatch(text):
        return raw[3].encode() if "b" in raw[1].lower() else raw[3]
    is_bytes, body = text[0] in "bB", text.lstrip("bB")
    quote = 3 if body[:3] in {'"""', "'''"} else 1
    return _unescaped(source, at, body[quote:-quote], is_bytes=is_bytes)


def _unescaped(source: str, at: int, body: str, *, is_bytes: bool) -> str | bytes:
    def replaced(match: re.Match[str]) -> str:
        if match["plain"]:
            return _PLAIN.get(match["plain"], match["plain"])
        code = int(match["octal"], 8) if match["octal"] else int(match["hex"] or match["u4"] or match["u8"] or "-1", 16)
        unicode = match["u4"] or match["u8"]
        if code < 0 or code > 0x10FFFF or 0xD800 <= code <= 0xDFFF or (unicode and is_bytes):
            raise CompileError(source, at, f"invalid escape sequence {match.group()!r}")
        # Surrogates carry single bytes through `str`, as Python's own "surrogateescape" does.
        return chr(0xDC00 + code) if is_bytes and code > 0x7F else chr(code)

    text = _ESCAPE.sub(replaced, body)
    if not is_bytes:
        return text
    return text.encode("utf-8", "surrogateescape")
