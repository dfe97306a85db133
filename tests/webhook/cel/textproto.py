"""Read protobuf's text format (https://protobuf.dev/reference/protobuf/textformat-spec), as far as cel-spec uses it."""

import ast
import re
from typing import Any

_TOKEN = re.compile(
    r"""\s+|\#[^\n]*|(?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(?P<word>[-+.\w]+)|(?P<mark>[{}\[\]<>:,;/])"""
)

Message = dict[str, list[Any]]


def read(text: str) -> Message:
    """Return a message: the values of each field, in order; scalars as text, strings as bytes."""
    tokens = [match for match in _TOKEN.finditer(text) if match.lastgroup]
    message, end = _fields(tokens, 0)
    assert end == len(tokens), tokens[end]
    return message


def _fields(tokens: list[re.Match[str]], at: int) -> tuple[Message, int]:
    message: Message = {}
    while at < len(tokens) and tokens[at].group() not in "}>":
        name = tokens[at].group()
        at += 1
        if name == "[":  # an Any, or an extension
            end = next(i for i in range(at, len(tokens)) if tokens[i].group() == "]")
            name, at = "".join(token.group() for token in tokens[at:end]), end + 1
        if tokens[at].group() == ":":
            at += 1
        values, at = _values(tokens, at)
        message.setdefault(name, []).extend(values)
        if at < len(tokens) and tokens[at].group() in ",;":
            at += 1
    return message, at


def _values(tokens: list[re.Match[str]], at: int) -> tuple[list[Any], int]:
    if tokens[at].group() == "[":
        values, at = [], at + 1
        while tokens[at].group() != "]":
            more, at = _values(tokens, at)
            values += more
            at += tokens[at].group() == ","
        return values, at + 1
    if tokens[at].group() in "{<":
        message, at = _fields(tokens, at + 1)
        return [message], at + 1
    if tokens[at].lastgroup == "text":
        text = b""
        while at < len(tokens) and tokens[at].lastgroup == "text":
            text += _unescaped(tokens[at].group()[1:-1])
            at += 1
        return [text], at
    return [tokens[at].group()], at + 1


_ESCAPE = re.compile(
    rb"""\\(?:([0-7]{1,3})|x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))""",
    re.DOTALL,
)


def _unescaped(text: str) -> bytes:
    def replaced(match: re.Match[bytes]) -> bytes:
        if match[1]:
            return bytes([int(match[1], 8)])
        if match[2]:
            return bytes([int(match[2], 16)])
        if match[3] or match[4]:
            return chr(int(match[3] or match[4], 16)).encode()
        return (
            bytes(ast.literal_eval(f"b'\\{match[5].decode()}'"))
            if match[5] in b"abfnrtv"
            else match[5]
        )

    return _ESCAPE.sub(replaced, text.encode())
