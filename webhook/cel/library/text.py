"""Text: cel-go's strings extension, base64, and regular expressions of RE2."""

import base64
import binascii
from typing import Any

from config.regexes import compile_regex
from webhook.cel.cost import COPIED, NO_MORE, WALKED, Meter, copying, of_size, reading, searching
from webhook.cel.errors import EvaluationError, no_overload
from webhook.cel.functions import declare

MAX_PATTERN = 1024  # characters of a regular expression
MAX_COMPILED = 256  # cached regular expressions
MAX_MEMORY = 1 << 18  # bytes of one
# By pattern: the compiled one, and the number of its instructions.
_COMPILED: dict[str, tuple[Any, int]] = {}

_SPACE = "".join(
    map(chr, (*range(9, 14), 32, 133, 160, 5760, *range(8192, 8203), 8232, 8233, 8239, 8287, 12288))
)
_QUOTED = tuple(zip('\\\a\b\f\n\r\t\v"', map("\\{}".format, '\\abfnrtv"'), strict=True))


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


def _split(meter: Meter, text: str, separator: str, count: int = -1) -> list[str]:
    if count == 0:
        return []
    meter.charge(2 * searching(text, separator))
    parts = text.count(separator) if separator else len(text)
    meter.charge((min(parts, count) if count > 0 else parts) + (len(text) >> COPIED))
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


def _replace(meter: Meter, text: str, old: str, new: str, count: int = -1) -> str:
    meter.charge(3 * searching(text, old))
    matches = text.count(old)
    inserted = (min(matches, count) if count >= 0 else matches) * (8 + len(new))
    meter.charge(len(text) + inserted >> COPIED)
    return text.replace(old, new, max(count, -1))


def _join(meter: Meter, items: list[Any], separator: str = "") -> str:
    meter.charge(len(items) >> 1)
    if any(type(item) is not str for item in items):
        raise no_overload(f"join{'(list, string)' if separator else '(list)'}")
    meter.charge(sum(map(len, items)) + len(items) * len(separator) >> COPIED)
    return separator.join(items)


def quote(text: str) -> str:
    """Return `text` as a literal in double quotes."""
    for character, escaped in _QUOTED:
        text = text.replace(character, escaped)
    return f'"{text}"'


def _escape_key(text: str) -> str:
    return text.replace("~", "~0").replace("/", "~1")


def _decode(text: str) -> bytes:
    bare = text.rstrip("=")
    try:
        return base64.b64decode(bare + "=" * (-len(bare) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise EvaluationError("illegal base64 data") from None


def compile_pattern(meter: Meter, pattern: str) -> tuple[Any, int]:
    """Return a compiled regular expression and its number of instructions.

    Raises EvaluationError if it is invalid or too large. Charges for compiling a new one.
    """
    compiled = _COMPILED.get(pattern)
    if compiled is not None:
        return compiled
    if len(pattern) > MAX_PATTERN:
        raise EvaluationError(
            f"regular expression of {len(pattern)} characters; at most {MAX_PATTERN} are allowed"
        )
    meter.charge(1000 + 10 * len(pattern))
    try:
        program = compile_regex(pattern, MAX_MEMORY)
    except ValueError as error:
        meter.charge(20_000)  # it may have been too large
        raise EvaluationError(f"error parsing regexp: {error}") from None
    if len(_COMPILED) >= MAX_COMPILED:
        _COMPILED.clear()
    compiled = _COMPILED[pattern] = program, program.programsize
    meter.charge(compiled[1])
    return compiled


def _program(meter: Meter, text: bytes, pattern: str) -> Any:
    """Return a compiled regular expression, and charge for one search in a text."""
    program, size = compile_pattern(meter, pattern)
    meter.charge(10 + (len(text) * size >> 5))
    return program


def _encode(meter: Meter, text: str) -> bytes:
    meter.charge(len(text) >> COPIED)
    return text.encode()


def _matches(meter: Meter, text: str, pattern: str) -> bool:
    searched = _encode(meter, text)
    return _program(meter, searched, pattern).search(searched) is not None


def _find(meter: Meter, text: str, pattern: str) -> str:
    searched = _encode(meter, text)
    match = _program(meter, searched, pattern).search(searched)
    return "" if match is None else match.group().decode()


def _find_all(meter: Meter, text: str, pattern: str, count: int = -1) -> list[str]:
    matches: list[str] = []
    searched, end = _encode(meter, text), -1
    _, size = compile_pattern(meter, pattern)
    for match in _program(meter, searched, pattern).finditer(searched) if count else ():
        start = match.start()
        # the next search starts at this offset
        meter.charge(10 + ((len(searched) - start) * size >> 5))
        if start < len(searched) and searched[start] & 0xC0 == 0x80:
            continue  # an empty match within a character
        before, end = end, match.end()
        if (start, end) != (before, before):  # an empty match next to another is skipped
            matches.append(match.group().decode())
        if len(matches) == count:
            break
    return matches


def _searching_backwards(text: str, part: str, start: int | None = None) -> int:
    """Cost of a search backwards, for which Python has no linear algorithm."""
    size = len(text) if start is None else max(min(len(text), start + len(part)), 0)
    return (size >> COPIED) + (size * len(part) >> 9)


def _cutting(text: str, start: int, end: int | None = None) -> int:
    return max((len(text) if end is None else min(end, len(text))) - start, 0) >> COPIED


declare(
    ("(string).charAt(int) -> string", _char_at, NO_MORE),
    ("(string).indexOf(string, ?int) -> int", _index_of, searching),
    ("(string).lastIndexOf(string, ?int) -> int", _last_index_of, _searching_backwards),
    ("(string).lowerAscii() -> string", lambda text: text.encode().lower().decode(), reading),
    ("(string).upperAscii() -> string", lambda text: text.encode().upper().decode(), reading),
    ("(string).trim() -> string", lambda text: text.strip(_SPACE), reading),
    ("(string).replace(string, string, ?int) -> string", _replace, WALKED),
    ("(string).split(string, ?int) -> list(string)", _split, WALKED),
    ("(string).substring(int, ?int) -> string", _substring, _cutting),
    ("(list(string)).join(?string) -> string", _join, WALKED),
    ("strings.quote(string) -> string", quote, of_size(2)),
    ("jsonpatch.escapeKey(string) -> string", _escape_key, of_size(4)),
    ("base64.encode(bytes) -> string", lambda value: base64.b64encode(value).decode(), copying),
    ("base64.decode(string) -> bytes", _decode, copying),
    ("(string).matches(string) -> bool; matches(string, string) -> bool", _matches, WALKED),
    ("(string).find(string) -> string", _find, WALKED),
    ("(string).findAll(string, ?int) -> list(string)", _find_all, WALKED),
)
