"""The parsers of YAML text, and the nodes of a document."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import yaml
from yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    StreamEndEvent,
)
from yaml.parser import Parser
from yaml.reader import Reader
from yaml.scanner import Scanner

from config.document_parts import DocumentPart
from config.yaml_scalars import MERGE, NULL, NULLS, TEXT


@dataclass(frozen=True, slots=True)
class Mark:
    """A place in a text, from 0."""

    index: int
    line: int
    column: int


SURROGATE = re.compile(r"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")


class PlainParser(Reader, Scanner, Parser):
    """PyYAML's own parser: slow, with clear error messages."""

    def __init__(self, text: str) -> None:
        """Parse this text."""
        Reader.__init__(self, text)
        Scanner.__init__(self)
        Parser.__init__(self)


# libyaml's parser, ten times as fast.
quick: Callable[[str], Any] = yaml.CSafeLoader if yaml.__with_libyaml__ else PlainParser


def compose(text: str, part: DocumentPart) -> yaml.Node:
    """Return the root node of a document that has been read, with marks in the whole text.

    Raises YAMLError for JSON that no parser of YAML takes.
    """
    own = part.text(text)
    if part.is_json:  # YAML has no surrogates; the replacement is as long
        own = SURROGATE.sub(r"\\ufffd", own)
    try:
        return _Composer(quick(own), part).root()
    except yaml.YAMLError:  # such as `{a:{}}`, which only PyYAML's own parser accepts
        return _Composer(PlainParser(own), part).root()


class _Composer:
    """Builds nodes, with the latest of repeated anchors, and tags of nulls and merge keys only."""

    def __init__(self, parser: Any, part: DocumentPart) -> None:
        self._next: Callable[[], Any] = parser.get_event
        self._part = part
        self._anchors: dict[str, yaml.Node] = {}

    def root(self) -> yaml.Node:
        while not isinstance(event := self._next(), DocumentStartEvent):
            if isinstance(event, StreamEndEvent):
                return yaml.ScalarNode(NULL, "", self._mark(event), self._mark(event))
        return self._node(self._next())

    def _node(self, event: Any) -> yaml.Node:
        if event.__class__ is AliasEvent:
            return self._anchors[str(event.anchor)]
        if event.__class__ is ScalarEvent:
            start, end = self._mark(event), self._mark(event, is_end=True)
            scalar = yaml.ScalarNode(_tag(event), event.value, start, end, event.style)
            if event.anchor:
                self._anchors[event.anchor] = scalar
            return scalar
        is_mapping = event.__class__ is MappingStartEvent
        kind = yaml.MappingNode if is_mapping else yaml.SequenceNode
        node: Any = kind(event.tag, [], self._mark(event), None, flow_style=event.flow_style)
        if event.anchor:
            self._anchors[event.anchor] = node
        last = MappingEndEvent if is_mapping else SequenceEndEvent
        while (event := self._next()).__class__ is not last:
            item = self._node(event)
            node.value.append((item, self._node(self._next())) if is_mapping else item)
        node.end_mark = self._mark(event, is_end=True)
        return node  # type: ignore[no-any-return]

    def _mark(self, event: Any, *, is_end: bool = False) -> Any:
        mark, part = event.end_mark if is_end else event.start_mark, self._part
        column = mark.column + (0 if mark.line else part.column)
        return Mark(mark.index + part.begin, mark.line + part.line, column)


def _tag(event: Any) -> str:
    if event.tag is None and event.implicit[0]:
        return NULL if event.value in NULLS else MERGE if event.value == "<<" else TEXT
    return event.tag or TEXT
