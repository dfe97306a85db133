"""Text: cel-go's strings extension, regular expressions (RE2, linear time) and base64."""

import base64
import binascii
from typing import Any

import re2

from webhook.cel.errors import EvaluationError
from webhook.cel.functions import declare, function, linear
from webhook.cel.values import NONE, Optional, size_of

MAX_PATTERN = 1024  # characters of a regular expression
MAX_COMPILED = 1024  # regular expressions that are kept
_COMPILED: dict[str, Any] = {}
_OPTIONS = re2.Options()
_OPTIONS.log_errors = False
_OPTIONS.max_mem = 1 << 18  # bytes of one
_UPPER = str.maketrans("abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ")
_LOWER = {value: key for key, value in _UPPER.items()}
_SPACE = "".join(map(chr, (*range(9, 14), 32, 133, 160, 5760, *range(8192, 8203), 8232, 8233, 8239, 8287, 12288)))
_QUOTED = {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v", "\\": "\\\\"}


def _index_error(index: int) -> EvaluationError:
    return EvaluationError(f"index out of range: {index}")


@function("(string).charAt(int) -> string")
def _char_at(text: str, index: int) -> str:
    if not 0 <= index <= len(text):
        raise _index_error(index)
    return text[index : index + 1]


@function("(string).indexOf(string) -> int", "(string).indexOf(string, int) -> int", cost=linear)
def _index_of(text: str, part: str, start: int = 0) -> int:
    if not part:
        return start
    if start < 0:
        raise _index_error(start)
    return text.find(part, start)


@function("(string).lastIndexOf(string) -> int", "(string).lastIndexOf(string, int) -> int", cost=linear)
def _last_index_of(text: str, part: str, start: int | None = None) -> int:
    if start is None:
        return text.rfind(part)
    if not part:
        return start
    if start < 0:
        raise _index_error(start)
    return -1 if start >= len(text) else text.rfind(part, 0, start + len(part))


declare(lambda text: text.translate(_LOWER), "(string).lowerAscii() -> string", cost=linear)
declare(lambda text: text.translate(_UPPER), "(string).upperAscii() -> string", cost=linear)
declare(lambda text: text.strip(_SPACE), "(string).trim() -> string", cost=linear)
declare(lambda text: text[::-1], "(string).reverse() -> string", cost=linear)


def _growth(text: str, old: str, new: str, *_: int) -> int:
    return (len(text) + text.count(old) * len(new)) >> 3


declare(
    lambda text, old, new, count=-1: text.replace(old, new, max(count, -1)),
    "(string).replace(string, string) -> string",
    "(string).replace(string, string, int) -> string",
    cost=_growth,
)


@function("(string).split(string) -> list(string)", "(string).split(string, int) -> list(string)", cost=linear)
def _split(text: str, separator: str, count: int = -1) -> list[str]:
    if count == 0:
        return []
    if separator:
        return text.split(separator, count - 1 if count > 0 else -1)
    if 0 < count < len(text):
        return [*text[: count - 1], text[count - 1 :]]
    return list(text)


@function("(string).substring(int) -> string", "(string).substring(int, int) -> string", cost=linear)
def _substring(text: str, start: int, end: int | None = None) -> str:
    if end is not None and start > end:
        raise EvaluationError(f"invalid substring range. start: {start}, end: {end}")
    for index in (start,) if end is None else (start, end):
        if not 0 <= index <= len(text):
            raise _index_error(index)
    return text[start:end]


def _joined_size(items: list[Any], separator: str = "") -> int:
    return (sum(map(size_of, items)) + len(items) * (len(separator) + 1)) >> 2


@function("(list(string)).join() -> string", "(list(string)).join(string) -> string", cost=_joined_size)
def _join(items: list[Any], separator: str = "") -> str:
    for item in items:
        if type(item) is not str:
            shown = "(list, string)" if separator else "(list)"
            raise EvaluationError(f"no such overload: join{shown}")
    return separator.join(items)


@function("strings.quote(string) -> string", cost=linear)
def quote(text: str) -> str:
    """Return `text` as a literal in double quotes."""
    return '"' + "".join(_QUOTED.get(character, '\\"' if character == '"' else character) for character in text) + '"'


def compiled(pattern: str) -> Any:
    """Return a compiled regular expression. EvaluationError where it is none, or too large."""
    found = _COMPILED.get(pattern)
    if found is not None:
        return found
    if len(pattern) > MAX_PATTERN:
        raise EvaluationError(f"regular expression of {len(pattern)} characters; at most {MAX_PATTERN} are allowed")
    try:
        found = re2.compile(pattern, _OPTIONS)
    except re2.error as error:
        text = error.args[0].decode() if error.args and isinstance(error.args[0], bytes) else str(error)
        raise EvaluationError(f"error parsing regexp: {text}") from None
    if len(_COMPILED) >= MAX_COMPILED:
        _COMPILED.clear()
    _COMPILED[pattern] = found
    return found


def _searched(text: str, pattern: str, *_: int) -> int:
    """Cost of a search; a pattern that has not been compiled costs more, by about what compiling it takes."""
    return (len(text) >> 3) + (4 if pattern in _COMPILED else 1000 + 100 * len(pattern))


@function("(string).matches(string) -> bool", "matches(string, string) -> bool", cost=_searched)
def _matches(text: str, pattern: str) -> bool:
    return compiled(pattern).search(text.encode()) is not None


@function("(string).find(string) -> string", cost=_searched)
def _find(text: str, pattern: str) -> str:
    match = compiled(pattern).search(text)
    return "" if match is None else match.group()


def _repeated(text: str, pattern: str, *_: int) -> int:
    return 4 * len(text) + _searched(text, pattern)


@function("(string).findAll(string) -> list(string)", "(string).findAll(string, int) -> list(string)", cost=_repeated)
def _find_all(text: str, pattern: str, count: int = -1) -> list[str]:
    return [match.group() for match in _matched(text, pattern, count)]


def _matched(text: str, pattern: str, count: int) -> list[Any]:
    found: list[Any] = []
    end = -1
    for match in compiled(pattern).finditer(text) if count else ():
        if match.start() < match.end() or match.start() != end:  # an empty match beside another does not count
            found.append(match)
        end = match.end()
        if len(found) == count:
            break
    return found


@function("regex.extract(string, string) -> optional_type(string)", cost=_searched)
def _extract(text: str, pattern: str) -> Optional:
    match = _one_group(pattern).search(text)
    if match is None:
        return NONE
    found = match.group(1 if match.re.groups else 0)
    return NONE if found is None else Optional(found)


@function("regex.extractAll(string, string) -> list(string)", cost=_repeated)
def _extract_all(text: str, pattern: str) -> list[str]:
    group = 1 if _one_group(pattern).groups else 0
    return [found for match in _matched(text, pattern, -1) if (found := match.group(group))]


def _one_group(pattern: str) -> Any:
    found = compiled(pattern)
    if found.groups > 1:
        raise EvaluationError(f"regular expression has more than one capturing group: {pattern!r}")
    return found


declare(lambda value: base64.b64encode(value).decode(), "base64.encode(bytes) -> string", cost=linear)


@function("base64.decode(string) -> bytes", cost=linear)
def _decode(text: str) -> bytes:
    try:
        return base64.b64decode(text.rstrip("=") + "=" * (-len(text.rstrip("=")) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise EvaluationError("illegal base64 data") from None


declare(lambda text: text.replace("~", "~0").replace("/", "~1"), "jsonpatch.escapeKey(string) -> string", cost=linear)
