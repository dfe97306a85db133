"""Regular expressions: RE2's, which take linear time."""

from typing import Any

from webhook.cel.errors import EvaluationError
from webhook.cel.functions import function
from webhook.cel.values import NONE, Optional

MAX_PATTERN = 1024  # characters of a regular expression
MAX_COMPILED = 1024  # regular expressions that are kept
MAX_MEMORY = 1 << 18  # bytes of one
_COMPILED: dict[str, Any] = {}


def compiled(pattern: str) -> Any:
    """Return a compiled regular expression. EvaluationError where it is none, or too large."""
    found = _COMPILED.get(pattern)
    if found is not None:
        return found
    if len(pattern) > MAX_PATTERN:
        raise EvaluationError(f"regular expression of {len(pattern)} characters; at most {MAX_PATTERN} are allowed")
    import re2  # with the C++ library 2 MB, which a process without regular expressions does not need

    options = re2.Options()
    options.log_errors, options.max_mem = False, MAX_MEMORY
    try:
        found = re2.compile(pattern, options)
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


def _repeated(text: str, pattern: str, *_: int) -> int:
    return 12 * len(text) + _searched(text, pattern)


@function("(string).matches(string) -> bool", "matches(string, string) -> bool", cost=_searched)
def _matches(text: str, pattern: str) -> bool:
    return compiled(pattern).search(text.encode()) is not None


@function("(string).find(string) -> string", cost=_searched)
def _find(text: str, pattern: str) -> str:
    match = compiled(pattern).search(text)
    return "" if match is None else str(match.group())


@function("(string).findAll(string, ?int) -> list(string)", cost=_repeated)
def _find_all(text: str, pattern: str, count: int = -1, group: int = 0) -> list[str]:
    found: list[str] = []
    end = -1
    for match in compiled(pattern).finditer(text) if count else ():
        before, (start, end) = end, match.span()
        if (start, end) != (before, before):  # an empty match beside another does not count
            found.append(match.group(group) or "")
        if len(found) == count:
            break
    return found


@function("regex.extract(string, string) -> optional_type(string)", cost=_searched)
def _extract(text: str, pattern: str) -> Optional:
    group = _group(pattern)
    match = compiled(pattern).search(text)
    found = None if match is None else match.group(group)
    return NONE if found is None else Optional(found)


@function("regex.extractAll(string, string) -> list(string)", cost=_repeated)
def _extract_all(text: str, pattern: str) -> list[str]:
    return list(filter(None, _find_all(text, pattern, group=_group(pattern))))


def _group(pattern: str) -> int:
    """Return which group to extract: the only one, or 0 for the whole match."""
    count = int(compiled(pattern).groups)
    if count > 1:
        raise EvaluationError(f"regular expression has more than one capturing group: {pattern!r}")
    return count
