"""Splits a text into JSON values and YAML documents, where kubectl does.

Source of the rules: YAMLOrJSONDecoder and YAMLReader of k8s.io/apimachinery/pkg/util/yaml.
"""

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from config.yaml_scalars import LARGEST_INTEGER, json_number

MARK = "\ufeff"  # a byte order mark
SEPARATOR = re.compile(r"^---(.*)\n?", re.MULTILINE)
OPENING_BRACE = re.compile(r"\s*\{")
BLANK = re.compile(r"[ \t\r\n]*")
LINE_END = re.compile(r"[^\S\n]*\n?")
# A directive belongs to the document after it.
DIRECTIVES = re.compile(r"(?:[ \t]*(?:#.*)?\r?\n)*%(?:.*\n)(?:(?:%.*|[ \t]*(?:#.*)?)\n)*")

NOT_JSON = (json.JSONDecodeError, RecursionError)
UNREAD = "; what follows it, up to a line ---, is not read"


class UnusableError(ValueError):
    """A text that cannot be converted to JSON; `line` counts from 0."""

    def __init__(self, line: int, problem: str) -> None:
        """Store the line and the problem."""
        super().__init__(problem)
        self.line = line


class DuplicateKeyError(ValueError):
    """A JSON object has a key twice."""


@dataclass(frozen=True, slots=True)
class DocumentPart:
    """A document of a text: its offsets, and line and column (from 0) of its first character.

    `value` is the value of a JSON document; YAML is parsed by `yaml_reader`. A document with a
    `fault` has no value that kubectl would read as every other tool does.
    """

    begin: int
    end: int
    line: int
    column: int
    is_json: bool = False
    value: Any = field(default=None, compare=False)
    fault: UnusableError | None = field(default=None, compare=False)

    def text(self, whole: str) -> str:
        """Return the text of the document."""
        return whole[self.begin : self.end]


def split(text: str) -> list[DocumentPart]:
    """Return the documents of a text, also empty ones."""
    parts, begin = list[DocumentPart](), 0
    if OPENING_BRACE.match(text):
        parts, begin = _split_json(text)
    return [*parts, *_split_yaml(text, begin)]


def _split_json(text: str) -> tuple[list[DocumentPart], int]:
    """Return the JSON values that a text begins with, and where YAML begins after them."""
    parts = list[DocumentPart]()
    end = number = line = line_begin = 0
    while (begin := _skip(BLANK, text, end)) < len(text):
        if (breaks := text.count("\n", end, begin)) > 0:
            line, line_begin = line + breaks, text.rindex("\n", end, begin) + 1
        column = begin - line_begin
        try:
            value, after = JSON.raw_decode(text, begin)
        except (*NOT_JSON, DuplicateKeyError, OverflowError) as error:
            if number < 2 and not isinstance(error, OverflowError):
                return parts, _skip(LINE_END, text, end) if number else 0
            # As kubectl: after two values, the rest is JSON, too.
            problem, value_end = f"not JSON: {_reason(error)}", _end_of_value(text, begin)
            after = _next_separator(text, begin) if value_end is None else value_end
            problem += UNREAD if value_end is None else ""
            fault = UnusableError(line, problem)
            parts.append(DocumentPart(begin, after, line, column, fault=fault))
            if value_end is None:
                return parts, after
        else:
            parts.append(DocumentPart(begin, after, line, column, is_json=True, value=value))
        if (breaks := text.count("\n", begin, after)) > 0:
            line, line_begin = line + breaks, text.rindex("\n", begin, after) + 1
        end, number = after, number + 1
    return parts, len(text)


def _reason(error: Exception) -> str:
    return "nested too deeply" if isinstance(error, RecursionError) else str(error)


def _end_of_value(text: str, begin: int) -> int | None:
    """Return the end of a JSON value that is only unusable; None if it is not JSON at all."""
    try:
        return ANY_JSON.raw_decode(text, begin)[1]
    except NOT_JSON:
        return None


def _next_separator(text: str, begin: int) -> int:
    separator = SEPARATOR.search(text, begin)
    return len(text) if separator is None else separator.start()


def _skip(expression: re.Pattern[str], text: str, begin: int) -> int:
    """Return the end of the expression, which also matches nothing."""
    match = expression.match(text, begin)
    return begin if match is None else match.end()


def _split_yaml(text: str, begin: int) -> Iterator[DocumentPart]:
    rest, offset = text[begin:], begin
    line = text.count("\n", 0, begin)
    fault: UnusableError | None = None
    for separator in SEPARATOR.finditer(rest):
        content = separator[1].strip()
        is_separator = not content or content[0] == "#"
        if not is_separator and not separator[1][0].isspace():
            at = line + text.count("\n", begin, offset + separator.start())
            problem = f"not YAML: a document begins with --- alone, not ---{content}"
            fault = fault or UnusableError(at, problem)
            continue
        if is_separator and DIRECTIVES.fullmatch(text, begin, offset + separator.start()):
            continue
        end = offset + separator.start()
        yield _part(text, begin, end, line, fault)
        fault = None
        # `--- text` is a document that begins on the line of its separator.
        after = offset + separator.end() if is_separator else end
        line += text.count("\n", begin, after)
        begin = after
    yield _part(text, begin, len(text), line, fault)


def _part(text: str, begin: int, end: int, line: int, fault: UnusableError | None) -> DocumentPart:
    column = begin - (text.rfind("\n", 0, begin) + 1)
    # After --- on the first line, kubectl reads a mark as a part of the document.
    is_inside = text.startswith("---") and text.find("\n") == begin - 1
    if text[begin:end].startswith(MARK) and not is_inside:
        begin += 1
    return DocumentPart(begin, end, line, column, fault=fault)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise DuplicateKeyError(f"duplicate key {twice!r}")
    return value


def _integer(text: str) -> int | float:
    if len(text) < 20:
        number = int(text)
        if -LARGEST_INTEGER - 1 <= number <= LARGEST_INTEGER:
            return number
    return _float(text)


def _float(text: str) -> int | float:
    number = float(text)
    if not math.isfinite(number):
        raise OverflowError(f"the number {text} is too large")
    return json_number(number)


def _constant(text: str) -> Any:
    raise json.JSONDecodeError(f"{text} is no JSON", text, 0)


JSON = json.JSONDecoder(
    object_pairs_hook=_object,
    parse_int=_integer,
    parse_float=_float,
    parse_constant=_constant,
)
# Finds the end of a value whose keys or numbers are unusable.
ANY_JSON = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=_constant)
