"""Regular expressions: RE2's, which take linear time."""

from typing import Any

from webhook.cel.errors import EvaluationError
from webhook.cel.functions import declare

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
    """Cost of a search; a pattern that has not been compiled costs more, by about what compiling it takes."""
    return (len(text) >> 3) + (4 if pattern in _COMPILED else 1000 + 100 * len(pattern))


declare(
    ("(string).matches(string) -> bool; matches(string, string) -> bool", _matches, _cost),
    ("(string).find(string) -> string", _find, _cost),
    (
        "(string).findAll(string, ?int) -> list(string)",
        _find_all,
        lambda text, pattern, *_: 12 * len(text) + _cost(text, pattern),
    ),
)
