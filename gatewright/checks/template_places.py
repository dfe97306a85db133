"""Find the fields of a rendered object in its Helm template, by keys and indentation.

If the template copies a chart value unchanged, the position is that in the values file
(`ChartValues`).
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from config.documents import Document, read_documents, readable_documents
from config.field_paths import split_path
from config.positions import FieldPlaces, OneLine, Position
from gatewright.checks.fixed_text import value_below
from gatewright.console.options import ChartOptions

# An action that is a whole value: it writes a chart value, or a whole part of the values.
ACTION = re.compile(
    r"[\"']?\{\{-? *(?:toYaml +)?(?P<values>\$?\.Values\.[\w.]+|\.)"
    r"(?: *\| *(?:quote|squote|int|toString|toYaml|n?indent +\d+))* *-?\}\}[\"']?"
)
WITH = re.compile(r"\s*\{\{-? *with +(\$?\.Values\.[\w.]+) *-?\}\}\s*")


def values_path(action: str, above: str) -> str:
    """Return the path of the chart value that an action copies; "" for any other action.

    `above` is the line before the key; if it is a `with`, a dot in the action means its value.
    """
    match = ACTION.fullmatch(action)
    name = match["values"] if match else ""
    if name == ".":
        scope = WITH.fullmatch(above)
        name = scope[1] if scope else ""
    return name.removeprefix("$").removeprefix(".Values.")


class ChartValues:
    """The values files that a chart is rendered with; the last file with a field wins."""

    def __init__(self, chart: Path, options: ChartOptions) -> None:
        """Read the files; an unreadable one, or document of one, counts as empty."""
        self._documents: list[Document] = []
        for file in (chart / "values.yaml", *map(Path, options.values)):
            self._documents += readable_documents(read_documents(file))[0]
        self._set = [key for each in options.set for key in re.findall(r"(?:^|,)([\w.]+)", each)]

    def find(self, path: str, rest: Sequence[str]) -> tuple[str, Position] | None:
        """Return file and position of the value at `path`, or of its field nearest to `rest`.

        Return None if no file has the value, or if --set replaces a part of it.
        """
        for set_path in self._set:
            if f"{set_path}.".startswith(f"{path}.") or f"{path}.".startswith(f"{set_path}."):
                return None
        below = "".join(each if each.startswith("[") else f".{each}" for each in rest)
        for document in reversed(self._documents):
            value = document.value
            for step in path.split("."):
                value = value_below(value, step)
            if value is not None:
                return document.source, document.place(path + below)
        return None


# The indentation with the dashes of list items, the key, and the value on its line.
KEY = re.compile(r"(\s*(?:- +)*)[\"']?([\w./-]+)[\"']?:(?:\s+(.*?))?(?:\s+#.*)?$")
ITEM = "-"


class TemplateToken(NamedTuple):
    """A key of a template, or the dash of a list item."""

    row: int
    column: int
    name: str
    value: str = ""
    values: str = ""  # the path of the chart value that it copies unchanged


class TemplateFile:
    """A template: its lines, and its parts, each of which is read once."""

    def __init__(self, text: str, values: ChartValues | None = None) -> None:
        """Take the text, and the values of its chart."""
        self._values = values
        self._lines = text.splitlines()
        self._ends = [row for row, line in enumerate(self._lines) if line.startswith("---")]
        self._kinds: dict[str, list[int]] = {}
        for row, line in enumerate(self._lines):
            match line.split("#")[0].split():
                case ["kind:", kind]:
                    self._kinds.setdefault(kind, []).append(row)
        self._parts: dict[int, TemplatePlaces] = {}

    def places(self, kind: str, number: int) -> FieldPlaces:
        """Return the field positions of an object.

        `number` counts, from 0, the rendered objects of this kind. A loop renders several objects
        from one part of the template; objects beyond the number of parts belong to the last part.
        """
        rows = self._kinds.get(kind)
        if not rows:
            return OneLine()
        row = rows[min(number, len(rows) - 1)]
        if row not in self._parts:
            at = bisect_left(self._ends, row)
            begin = self._ends[at - 1] + 1 if at else 0
            end = self._ends[at] if at < len(self._ends) else len(self._lines)
            tokens = tuple(_tokens(self._lines, begin, end))
            self._parts[row] = TemplatePlaces(row, tokens, self._values)
        return self._parts[row]


TemplateTokens = tuple[TemplateToken, ...]


@dataclass(frozen=True, slots=True)
class TemplatePlaces(FieldPlaces):
    """The part of a template that renders an object; `row` is the row of its kind."""

    row: int
    tokens: TemplateTokens
    values: ChartValues | None

    def find(self, path: str) -> tuple[str, Position]:
        """Return the position of the value at `path`, or of its key in the template.

        The file is that with the values, or "" for the template. If the template includes the field
        from elsewhere, the position is that of the nearest key above it.
        """
        position, block, written = (self.row + 1, 1), self.tokens, ""
        steps = split_path(path)
        for number, step in enumerate(steps):
            is_list = block[:1] and block[0].name == ITEM
            below = _item(block, step[1:-1]) if is_list else None
            below = below or _key(block, step.strip("[]"))
            if below is None:
                break
            token, block = below
            position, written = (token.row + 1, token.column + 1), token.values
            rest = steps[number + 1 :]
        of_values = self.values.find(written, rest) if written and self.values else None
        return of_values or ("", position)


def _tokens(lines: Sequence[str], begin: int, end: int) -> Iterator[TemplateToken]:
    for row in range(begin, end):
        if match := KEY.match(lines[row]):
            for dash in re.finditer(ITEM, match[1]):
                yield TemplateToken(row, dash.start(), ITEM)
            value, above = match[3] or "", lines[row - 1] if row else ""
            action = value or (lines[row + 1].strip() if row + 1 < end else "")
            written = values_path(action, above)
            yield TemplateToken(row, match.end(1), match[2], value, written)


def _children(block: TemplateTokens) -> list[tuple[TemplateToken, TemplateTokens]]:
    """Return the keys or items of a block, each with its nested tokens."""
    level = [
        index
        for index, name_at in enumerate(block)
        if name_at.column <= block[0].column and (name_at.name == ITEM) == (block[0].name == ITEM)
    ]
    ends = [*level[1:], len(block)]
    return [(block[at], block[at + 1 : end]) for at, end in zip(level, ends, strict=False)]


def _key(block: TemplateTokens, name: str) -> tuple[TemplateToken, TemplateTokens] | None:
    return next((each for each in _children(block) if each[0].name == name), None)


def _item(block: TemplateTokens, key: str) -> tuple[TemplateToken, TemplateTokens] | None:
    """Return a list item by its index, or by a field such as `name=app`.

    An item whose field is an action counts if it is the only one.
    """
    items = _children(block)
    if key.isdigit():
        return next(iter(items[int(key) :]), None)
    name, _, value = key.rpartition("=")
    fields = [(each, _key(each[1], name or "name")) for each in items]
    written = [(each, name[0].value.strip("\"' ")) for each, name in fields if name]
    exact = [each for each, text in written if text == value]
    actions = [each for each, text in written if "{{" in text]
    return exact[0] if exact else actions[0] if len(actions) == 1 else None
