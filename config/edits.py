"""Changes one field in YAML or JSON text and keeps comments, order and style."""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from kube.resource import PathElement

PLAIN = re.compile(r"(?!(?:true|false|null|yes|no|on|off|y|n)$)[A-Za-z_][\w./-]*", re.IGNORECASE)

ALIAS = re.compile(r"\s*:\s*(\*[^\s,\[\]{}]+)")  # after the key of a field


class EditError(ValueError):
    """The text cannot be changed safely."""


@dataclass(frozen=True, slots=True)
class TextEdit:
    """Replace the text from `start` to `end` by `text`."""

    start: int
    end: int
    text: str


def apply_edits(text: str, edits: Iterable[TextEdit]) -> str:
    """Return a text with all edits, whose places are those in the text before any of them.

    Of edits at the same place, the last one comes first. A text with CRLF gets no other line ends.
    Raises EditError if edits overlap.
    """
    newline = "\r\n" if "\r\n" in text else "\n"
    parts, at = list[str](), 0
    places = sorted((edit.start, -number, edit) for number, edit in enumerate(edits))
    for _, _, edit in places:
        if edit.start < at:
            raise EditError("edits overlap")
        new = edit.text.replace("\r\n", "\n").replace("\n", newline)
        parts += (text[at : edit.start], new)
        at = edit.end
    return "".join((*parts, text[at:]))


def replace_at(value: Any, path: Sequence[PathElement], new: Any) -> Any:
    """Return a value with `new` at `path`; None removes the field, and objects that become empty.

    The index after the last item of a list adds an item.

    Raises EditError if a list or item is missing.
    """
    step, *rest = path
    if isinstance(value, list) and not rest and step == len(value) and new is not None:
        return [*value, new]
    if isinstance(value, list) and isinstance(step, int) and step < len(value):
        items = value.copy()
        items[step] = replace_at(items[step], rest, new) if rest else new
        return items
    if not isinstance(value, dict | None) or isinstance(step, int):
        raise EditError("no such field")
    before = value or {}
    inner = replace_at(before.get(step), rest, new) if rest else new
    if inner is None or (new is None and inner == {}):
        return {key: each for key, each in before.items() if key != step}
    return {**before, step: inner}


def is_at(value: Any, path: Sequence[PathElement], new: Any) -> bool:
    """Return whether a value has `new` at `path`, or no field there (None)."""
    for step in path:
        if isinstance(value, dict) and step not in value:
            return new is None
        try:
            value = _below(value, step)
        except EditError:
            return False
    return bool(new is not None and value == new)


class EditableText:
    """A YAML or JSON text with its nodes' positions."""

    def __init__(self, text: str, *, is_json: bool = False) -> None:
        """Use this text; in JSON, keys and strings are quoted."""
        self.text = text
        self._is_json = is_json
        self._begin = len(text) - len(text.removeprefix("\ufeff"))  # marks do not count a BOM
        self._newline = "\r\n" if "\r\n" in text else "\n"

    def edit(self, node: yaml.Node, path: Sequence[PathElement], new: Any) -> TextEdit:
        """Return the edit that sets the field at `path` to `new`, or removes it (None)."""
        above: list[tuple[yaml.MappingNode, int]] = []
        for depth, step in enumerate(path):
            is_index = isinstance(node, yaml.SequenceNode) and isinstance(step, int)
            if is_index and int(step) < len(node.value):
                node, above = node.value[int(step)], []
                continue
            is_last = depth == len(path) - 1 and new is not None
            if isinstance(node, yaml.SequenceNode) and is_last and 0 < len(node.value) == step:
                return self._append(node, new)
            if not isinstance(node, yaml.MappingNode):
                if new is not None and _is_null(node):
                    return self._replace(node, None, _nest(path[depth:], new))
                raise EditError("no such field")
            index = next(
                (index for index, (key, _) in enumerate(node.value) if key.value == step), None
            )
            if index is None:
                if new is None:
                    raise EditError("no such field")
                return self._insert(node, str(step), _nest(path[depth + 1 :], new))
            above.append((node, index))
            key, node = node.value[index]
            if depth == len(path) - 1 and new is not None:
                return self._replace(node, key, new)
        while len(above) > 1 and len(above[-1][0].value) == 1:
            above.pop()  # an object that would become empty is removed with its last field
        return self._remove(*above[-1])

    def edit_apart(
        self, node: yaml.Node, value: Any, path: Sequence[PathElement], new: Any
    ) -> TextEdit:
        """Return an edit that changes no other place where an anchor is used.

        `value` is that of the node. The alias on the path is replaced by its value with the change;
        a field that is merged becomes one of the object itself. Raises EditError if there is none.
        """
        for depth, step in enumerate(path):
            rest = path[depth + 1 :]
            inner = _below(value, step)
            if isinstance(node, yaml.SequenceNode):
                node, value = node.value[int(step)], inner
                continue
            if not isinstance(node, yaml.MappingNode) or inner is None:
                break
            of_step = ((key, each) for key, each in node.value if key.value == step)
            key, below = next(of_step, (None, None))
            with_change = replace_at(inner, rest, new) if rest else new
            if key is None and with_change is not None:
                return self._insert(node, str(step), with_change)
            if key is None or below is None:
                break
            alias = ALIAS.match(self.text, self.at(key.end_mark))
            if below.start_mark.index < key.end_mark.index and alias and with_change is not None:
                return TextEdit(alias.start(1), alias.end(1), self._flow(with_change))
            node, value = below, inner
        raise EditError("no alias")

    def _replace(self, node: yaml.Node, key: yaml.Node | None, new: Any) -> TextEdit:
        start, end = self.at(node.start_mark), self.end(node)
        if key is not None and (isinstance(node, yaml.CollectionNode) and not node.flow_style):
            start = self.text.index(":", self.at(key.end_mark)) + 1
        is_glued = self.text[start - 1] == ":"
        return TextEdit(start, max(start, end), f"{' ' if is_glued else ''}{self._flow(new)}")

    def _insert(self, mapping: yaml.MappingNode, key: str, new: Any) -> TextEdit:
        if not mapping.value:
            at = self.at(mapping.start_mark) + 1
            return TextEdit(at, at, self._pair(key, new))
        end = self.end(mapping.value[-1][1]) or self.at(mapping.value[-1][0].end_mark) + 1
        if mapping.flow_style:
            return TextEdit(end, end, f",{self._flow_field(mapping, key, new)}")
        line_end = self.text.find(self._newline, end)
        at = len(self.text) if line_end < 0 else line_end
        indent = mapping.value[0][0].start_mark.column
        lines = "".join(
            f"{self._newline}{' ' * size}{line}" for size, line in self._block(indent, key, new)
        )
        return TextEdit(at, at, lines)

    def _flow_field(self, mapping: yaml.MappingNode, key: str, new: Any) -> str:
        """Return a field in flow style, on lines of its own where the others are."""
        first = mapping.value[0][0].start_mark
        if first.line == mapping.start_mark.line:
            return f" {self._pair(key, new)}"
        indent = " " * first.column
        lines = [self._pair(key, new)]
        if self._is_json:
            start = self.at(mapping.start_mark)
            above = self.text[self.text.rfind("\n", 0, start) + 1 : start]
            step = first.column - (len(above) - len(above.lstrip())) or 1
            written = json.dumps({key: new}, ensure_ascii=False, indent=step).splitlines()
            lines = [line[step:] for line in written[1:-1]]
        return "".join(f"{self._newline}{indent}{line}" for line in lines)

    def _append(self, items: yaml.SequenceNode, new: Any) -> TextEdit:
        end = self.end(items.value[-1])
        if items.flow_style:
            return TextEdit(end, end, f", {self._flow(new)}")
        line_end = self.text.find(self._newline, end)
        at = len(self.text) if line_end < 0 else line_end
        indent = " " * items.start_mark.column
        return TextEdit(at, at, f"{self._newline}{indent}- {self._flow(new)}")

    def _remove(self, mapping: yaml.MappingNode, index: int) -> TextEdit:
        pairs = mapping.value
        key, value = pairs[index]
        start, end = self.at(key.start_mark), max(self.end(value), self.at(key.end_mark) + 1)
        if mapping.flow_style:
            if index + 1 < len(pairs):
                return TextEdit(start, self.at(pairs[index + 1][0].start_mark), "")
            return TextEdit(self.end(pairs[index - 1][1]) if index else start, end, "")
        if len(pairs) == 1:
            return TextEdit(start, end, "{}")
        line_start = start - key.start_mark.column
        if self.text[line_start:start].strip():  # `- key: value`: the next field takes its place
            return TextEdit(start, self.at(pairs[index + 1][0].start_mark), "")
        line_end = self.text.find("\n", end)
        return TextEdit(line_start, len(self.text) if line_end < 0 else line_end + 1, "")

    def at(self, mark: yaml.Mark) -> int:
        """Return the offset of a mark in the text."""
        return self._begin + int(mark.index)

    def end(self, node: yaml.Node) -> int:
        """Return the end of a node's text: for a block, the end of its last item."""
        while isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
            last = node.value[-1]
            node = last[1] if isinstance(last, tuple) else last
        end = self.at(node.end_mark)
        while end and self.text[end - 1].isspace():
            end -= 1
        return end

    def _block(self, indent: int, key: str, new: Any) -> list[tuple[int, str]]:
        if not isinstance(new, dict) or not new:
            return [(indent, self._pair(key, new))]
        inner = (
            line for name, value in new.items() for line in self._block(indent + 2, name, value)
        )
        return [(indent, f"{self._scalar(key)}:"), *inner]

    def _pair(self, key: str, new: Any) -> str:
        return f"{self._scalar(key)}: {self._flow(new)}"

    def _flow(self, new: Any) -> str:
        if isinstance(new, dict):
            return f"{{{', '.join(self._pair(key, value) for key, value in new.items())}}}"
        if isinstance(new, list):
            return f"[{', '.join(map(self._flow, new))}]"
        return self._scalar(new)

    def _scalar(self, new: Any) -> str:
        is_plain = isinstance(new, str) and not self._is_json and PLAIN.fullmatch(new)
        return str(new) if is_plain else json.dumps(new, ensure_ascii=False)


def _below(value: Any, step: PathElement) -> Any:
    """Return the value at a key or index. Raises EditError if there is none."""
    try:
        return value[step]
    except (LookupError, TypeError):
        raise EditError("no such field") from None


def _is_null(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.tag == "tag:yaml.org,2002:null"


def _nest(path: Sequence[PathElement], new: Any) -> Any:
    for step in reversed(path):
        if isinstance(step, int):
            raise EditError("no such list")
        new = {step: new}
    return new
