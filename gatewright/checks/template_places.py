"""Finds the fields of a rendered object in its Helm template, by keys and indentation."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from config.lines import STEP, FieldPlaces, OneLine, Position

# The indentation with the dashes of list items, the key, and the value on its line.
KEY = re.compile(r"(\s*(?:- +)*)[\"']?([\w./-]+)[\"']?:(?:\s+(.*?))?(?:\s+#.*)?$")
ITEM = "-"


class TemplateToken(NamedTuple):
    """A key of a template, or the dash of a list item."""

    row: int
    column: int
    name: str
    value: str = ""


def template_places(text: str, kind: str, number: int) -> FieldPlaces:
    """Return the places of an object in the template that writes it.

    It is the object with this number, from 0, of its kind. A loop writes several objects by one
    part of a template: the last part is theirs.
    """
    lines = text.splitlines()
    kinds = [row for row, line in enumerate(lines) if line.split("#")[0].split() == ["kind:", kind]]
    if not kinds:
        return OneLine()
    row = kinds[min(number, len(kinds) - 1)]
    ends = [-1, *(each for each, line in enumerate(lines) if line.startswith("---")), len(lines)]
    begin, end = max(each for each in ends if each < row), min(each for each in ends if each > row)
    return TemplatePlaces(row, tuple(_tokens(lines, begin + 1, end)))


TemplateTokens = tuple[TemplateToken, ...]


@dataclass(frozen=True, slots=True)
class TemplatePlaces:
    """The part of a template that writes an object; `row` is that of its kind."""

    row: int
    tokens: TemplateTokens

    def place(self, path: str) -> Position:
        """Return the position of the key at `path`, or of the nearest one above that is there.

        What a template includes from elsewhere, such as `toYaml .Values.resources`, has no keys.
        """
        position, block = (self.row + 1, 1), self.tokens
        for step in STEP.findall(path):
            found = _item(block, step[1:-1]) if block[:1] and block[0].name == ITEM else None
            found = found or _key(block, step.strip("[]"))
            if found is None:
                break
            token, block = found
            position = token.row + 1, token.column + 1
        return position


def _tokens(lines: Sequence[str], begin: int, end: int) -> Iterator[TemplateToken]:
    for row in range(begin, end):
        if found := KEY.match(lines[row]):
            for dash in re.finditer(ITEM, found[1]):
                yield TemplateToken(row, dash.start(), ITEM)
            yield TemplateToken(row, found.end(1), found[2], found[3] or "")


def _children(block: TemplateTokens) -> list[tuple[TemplateToken, TemplateTokens]]:
    """Return the keys or items of a block, each with what is below it."""
    level = [
        index
        for index, each in enumerate(block)
        if each.column <= block[0].column and (each.name == ITEM) == (block[0].name == ITEM)
    ]
    ends = [*level[1:], len(block)]
    return [(block[at], block[at + 1 : end]) for at, end in zip(level, ends, strict=False)]


def _key(block: TemplateTokens, name: str) -> tuple[TemplateToken, TemplateTokens] | None:
    return next((each for each in _children(block) if each[0].name == name), None)


def _item(block: TemplateTokens, wanted: str) -> tuple[TemplateToken, TemplateTokens] | None:
    """Return a list item by its index, or by a field such as `name=app`.

    An item whose field is an action counts if it is the only one.
    """
    items = _children(block)
    if wanted.isdigit():
        return next(iter(items[int(wanted) :]), None)
    name, _, value = wanted.rpartition("=")
    fields = [(each, _key(each[1], name or "name")) for each in items]
    written = [(each, found[0].value.strip("\"' ")) for each, found in fields if found]
    exact = [each for each, text in written if text == value]
    actions = [each for each, text in written if "{{" in text]
    return exact[0] if exact else actions[0] if len(actions) == 1 else None
