"""Text: cel-go's strings extension, base64, and regular expressions, which are RE2's and take linear time."""

import base64
import binascii
from string import ascii_lowercase, ascii_uppercase
from typing import Any

from webhook.cel.errors import EvaluationError, no_overload
from webhook.cel.functions import declare, weigh

MAX_PATTERN = 1024  # characters of a regular expression
MAX_COMPILED = 1024  # regular expressions that are kept
MAX_MEMORY = 1 << 18  # bytes of one
_COMPILED: dict[str, Any] = {}

_UPPER = str.maketrans(ascii_lowercase, ascii_uppercase)
_LOWER = str.maketrans(ascii_uppercase, ascii_lowercase)
_SPACE = "".join(
    map(chr, (*range(9, 14), 32, 133, 160, 5760, *range(8192, 8203), 8232, 8233, 8239, 8287, 12288))
)
_QUOTED = str.maketrans(
    dict(zip('\a\b\f\n\r\t\v\\"', map("\\{}".format, 'abfnrtv\\"'), strict=True))
)


def _check_index(index: int, last: float = float("inf")) -> None:
    if not 0 <= index <= last:
        raise EvaluationError(f"index out of range: {index}")


def _char_at(text: str, index: int) -> str:
    _check_index(index, len(text))
    return text[index : index + 1]


def _index_of(text: str, part: str, start: int = 0) -> int:
    if not part:
        return start
    _check_index(start)
    return text.find(part, start)


def _last_index_of(text: str, part: str, start: int | None = None) -> int:
    if start is None:
        return text.rfind(part)
    if not part:
        return start
    _check_index(start)
    return -1 if start >= len(text) else text.rfind(part, 0, start + len(part))


def _split(text: str, separator: str, count: int = -1) -> list[str]:
    if count == 0:
        return []
    if separator:
        return text.split(separator, count - 1 if count > 0 else -1)
    if 0 < count < len(text):
        return [*text[: count - 1], text[count - 1 :]]
    return list(text)


def _substring(text: str, start: int, end: int | None = None) -> str:
    if end is not None and start > end:
        raise EvaluationError(f"invalid substring range. start: {start}, end: {end}")
    _check_index(start, len(text))
    _check_index(end or 0, len(text))
    return text[start:end]


def _join(items: list[Any], separator: str = "") -> str:
    if any(type(item) is not str for item in items):
        raise no_overload(f"join{'(list, string)' if separator else '(list)'}")
    return separator.join(items)


def quote(text: str) -> str:
    """Return `text` as a literal in double quotes."""
    return f'"{text.translate(_QUOTED)}"'


def _decode(text: str) -> bytes:
    bare = text.rstrip("=")
    try:
        return base64.b64decode(bare + "=" * (-len(bare) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise EvaluationError("illegal base64 data") from None


def compiled(pattern: str) -> Any:
    """Return a compiled regular expression. EvaluationError where it is none, or too large."""
    found = _COMPILED.get(pattern)
    if found is not None:
        return found
    if len(pattern) > MAX_PATTERN:
        raise EvaluationError(
            f"regular expression of {len(pattern)} characters; at most {MAX_PATTERN} are allowed"
        )
    # with the C++ library 2 MB, which a process without regular expressions does not need
    import re2

    options = re2.Options()
    options.log_errors, options.max_mem = False, MAX_MEMORY
    try:
        found = re2.compile(pattern, options)
    except re2.error as error:
        text = (
            error.args[0].decode()
            if error.args and isinstance(error.args[0], bytes)
            else str(error)
        )
        raise EvaluationError(f"error parsing regexp: {text}") from None
    if len(_COMPILED) >= MAX_COMPILED:
        _COMPILED.clear()
    _COMPILED[pattern] = found
    return found


def _matches(text: str, pattern: str) -> bool:
    return compiled(pattern).search(text.encode()) is not None


def _find(text: str, pattern: str) -> str:
    match = compiled(pattern).search(text)
    return "" if match is None else str(match.group())


def _find_all(text: str, pattern: str, count: int = -1) -> list[str]:
    found: list[str] = []
    end = -1
    for match in compiled(pattern).finditer(text) if count else ():
        before, (start, end) = end, match.span()
        if (start, end) != (before, before):  # an empty match beside another does not count
            found.append(match.group())
        if len(found) == count:
            break
    return found


def _cost(text: str, pattern: str) -> int:
    """Cost of a search.

    A pattern that has not been compiled costs more, by about what compiling it takes.
    """
    return (len(text) >> 3) + (4 if pattern in _COMPILED else 1000 + 100 * len(pattern))


declare(
    ("(string).charAt(int) -> string", _char_at),
    ("(string).indexOf(string, ?int) -> int", _index_of, weigh),
    ("(string).lastIndexOf(string, ?int) -> int", _last_index_of, weigh),
    ("(string).lowerAscii() -> string", lambda text: text.translate(_LOWER), weigh),
    ("(string).upperAscii() -> string", lambda text: text.translate(_UPPER), weigh),
    ("(string).trim() -> string", lambda text: text.strip(_SPACE), weigh),
    (
        "(string).replace(string, string, ?int) -> string",
        lambda text, old, new, count=-1: text.replace(old, new, max(count, -1)),
        lambda text, old, new, *_: (len(text) + text.count(old) * len(new)) >> 3,
    ),
    ("(string).split(string, ?int) -> list(string)", _split, weigh),
    ("(string).substring(int, ?int) -> string", _substring, weigh),
    (
        "(list(string)).join(?string) -> string",
        _join,
        lambda items, text="": 2 * weigh(items) + (len(items) * len(text) >> 2),
    ),
    ("strings.quote(string) -> string", quote, weigh),
    (
        "jsonpatch.escapeKey(string) -> string",
        lambda text: text.replace("~", "~0").replace("/", "~1"),
        weigh,
    ),
    ("base64.encode(bytes) -> string", lambda value: base64.b64encode(value).decode(), weigh),
    ("base64.decode(string) -> bytes", _decode),
    ("(string).matches(string) -> bool; matches(string, string) -> bool", _matches, _cost),
    ("(string).find(string) -> string", _find, _cost),
    (
        "(string).findAll(string, ?int) -> list(string)",
        _find_all,
        lambda text, pattern, *_: 12 * len(text) + _cost(text, pattern),
    ),
)
