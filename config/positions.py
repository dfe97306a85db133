"""Finds the line and column of a field in the text of its document."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import yaml

from config.document_parts import DocumentPart
from config.field_paths import split_path
from config.yaml_parsers import compose
from config.yaml_scalars import MERGE

Position = tuple[int, int]  # line and column, both from 1


class FieldPlaces(Protocol):
    """Finds the positions of a document's fields."""

    def find(self, path: str) -> tuple[str, Position]:
        """Return file and position of the field at `path`, or of its nearest parent.

        The file is "" if it is the document's own.
        """


@dataclass(frozen=True, slots=True)
class OneLine(FieldPlaces):
    """A document of which only one line is known."""

    line: int = 1

    def find(self, path: str) -> tuple[str, Position]:
        """Return the beginning of the line."""
        return "", (self.line, 1)


@dataclass(frozen=True, slots=True)
class TextLines(FieldPlaces):
    """The positions in a document that is a part of a text, and whose root is at `start`.

    `items` are the indexes of nested lists that lead to the object. The part is parsed again when a
    position is needed: most documents have no violation, and nodes take ten times the memory of
    the text.
    """

    text: str
    part: DocumentPart
    start: Position
    items: tuple[int, ...] = ()

    def find(self, path: str) -> tuple[str, Position]:
        """Return the position of the field at `path`, or of its nearest parent."""
        if not (path or self.items):
            return "", self.start
        try:
            root = _root(self.text, self.part)
        except yaml.YAMLError:  # JSON that no parser of YAML takes
            return "", self.start
        mark = _find(self._below(root), path)
        return "", (mark.line + 1, mark.column + 1)

    @property
    def node(self) -> yaml.Node:
        """The node of the document, with marks relative to the whole text.

        Raises YAMLError for JSON that no parser of YAML takes.
        """
        return self._below(_root(self.text, self.part))

    def _below(self, node: yaml.Node) -> yaml.Node:
        for index in self.items:
            # A merge key (<<) may provide `items`; then no node here has this key.
            listed = [value for key, value in node.value if key.value == "items"]
            if not listed:
                return node
            node = listed[0].value[index]
        return node


# The nodes of the last document: callers look up several fields of one in a row.
_root = lru_cache(maxsize=1)(compose)


def _find(node: yaml.Node, path: str) -> yaml.Mark:
    mark = node.start_mark
    for step in split_path(path):
        if isinstance(node, yaml.SequenceNode) and step.startswith("["):
            item = _item(node, step[1:-1])
            if item is None:
                break
            node, mark = item, item.start_mark
        elif isinstance(node, yaml.MappingNode):
            # A key in brackets, such as `labels[app.kubernetes.io/name]`.
            name = step[1:-1] if step.startswith("[") else step
            pairs = [pair for pair in _effective_pairs(node) if pair[0].value == name]
            if not pairs:
                break
            key, node = pairs[-1]
            mark = key.start_mark
        else:
            break
    return mark


def _item(node: yaml.SequenceNode, key: str) -> yaml.Node | None:
    if key.isdigit():
        return node.value[int(key)] if int(key) < len(node.value) else None
    name, _, wanted = key.rpartition("=")
    return _items_by(node, name or "name").get(wanted)


@lru_cache(maxsize=8)
def _items_by(node: yaml.SequenceNode, name: str) -> dict[str, yaml.Node]:
    """Return the first item for each value of a field: a list may have thousands of items."""
    items = dict[str, yaml.Node]()
    for item in node.value:
        for field, value in item.value if isinstance(item, yaml.MappingNode) else ():
            if field.value == name and isinstance(value, yaml.ScalarNode):
                items.setdefault(value.value, item)
    return items


def _effective_pairs(node: yaml.MappingNode) -> Iterator[tuple[yaml.Node, yaml.Node]]:
    """Yield the pairs of a mapping, those of its merge keys first: the last of a key counts."""
    for key, value in node.value:
        if key.tag == MERGE:
            merged = value.value if isinstance(value, yaml.SequenceNode) else (value,)
            for mapping in reversed(merged):
                yield from _effective_pairs(mapping)
    yield from (pair for pair in node.value if pair[0].tag != MERGE)
