"""Reads the values of YAML documents from parser events, without building nodes."""

import math
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple

import orjson
import yaml
from yaml.constructor import SafeConstructor
from yaml.events import (
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
)

from config import yaml_parsers

# Values of one document, with aliases expanded; no API object is nearly as large.
LARGEST = 1_000_000
TAG = "tag:yaml.org,2002:"
TEXT = f"{TAG}str"
_JSON = SafeConstructor()
CONVERSIONS = {
    f"{TAG}null": _JSON.construct_yaml_null,
    f"{TAG}bool": _JSON.construct_yaml_bool,
    f"{TAG}int": _JSON.construct_yaml_int,
    f"{TAG}float": _JSON.construct_yaml_float,
}


class UnusableError(ValueError):
    """YAML that cannot be converted to JSON; `line` counts from 0."""

    def __init__(self, line: int, problem: str) -> None:
        """Store the line and the problem."""
        super().__init__(problem)
        self.line = line


class ReadValue(NamedTuple):
    """The value of a document, the mark where it starts, and the offset where it ends."""

    value: Any
    start: yaml.Mark
    end: int


def read_values(text: str) -> Iterator[ReadValue]:
    """Yield the value of each document.

    Raises UnusableError, or YAMLError with the messages of PyYAML's own parser.
    """
    done = 0
    try:
        for document in _documents(yaml_parsers.quick(text)):
            yield document
            done += 1
    except yaml.YAMLError:
        yield from islice(_documents(yaml_parsers.PlainLoader(text)), done, None)


def _documents(parser: Any) -> Iterator[ReadValue]:
    while not isinstance(event := parser.get_event(), StreamEndEvent):
        if isinstance(event, DocumentStartEvent):
            root = parser.get_event()
            value = _DocumentReader(parser, root.start_mark.line).value(root)
            yield ReadValue(value, root.start_mark, parser.get_event().start_mark.index)


class _DocumentReader:
    """Reads one document. Aliases share the value of their anchor."""

    def __init__(self, parser: Any, line: int) -> None:
        self._next: Callable[[], Any] = parser.get_event
        self._line = line
        self._size = 0
        self._anchors: dict[str, tuple[Any, int]] = {}  # the value, and its size

    def value(self, event: Any) -> Any:
        """Return the value that starts with this event."""
        before = self._size
        self._grow(1)
        kind = event.__class__
        if kind is ScalarEvent:
            value = _scalar(event)
        elif kind is MappingStartEvent:
            _require(event, "map")
            value = self._mapping()
        elif kind is SequenceStartEvent:
            _require(event, "seq")
            value = []
            while (item := self._next()).__class__ is not SequenceEndEvent:
                value.append(self.value(item))
        elif event.anchor in self._anchors:
            value, size = self._anchors[event.anchor]
            self._grow(size)
            return value
        else:
            raise _unusable(event, f"found undefined alias {event.anchor!r}")
        if event.anchor is not None:
            if event.anchor in self._anchors:
                raise _unusable(event, f"found duplicate anchor {event.anchor!r}")
            self._anchors[event.anchor] = value, self._size - before
        return value

    def _mapping(self) -> dict[str, Any]:
        own, merged = dict[str, Any](), dict[str, Any]()
        while (key := self._next()).__class__ is not MappingEndEvent:
            if key.__class__ is ScalarEvent and key.value == "<<" and key.implicit[0]:
                value = self.value(self._next())
                for each in value if isinstance(value, list) else (value,):
                    if not isinstance(each, dict):
                        raise _unusable(key, "<< must be an object, or a list of objects")
                    merged |= {name: item for name, item in each.items() if name not in merged}
                continue
            is_plain = key.__class__ is ScalarEvent and key.anchor is None
            name = _scalar(key) if is_plain else self.value(key)
            if not isinstance(name, str):
                if isinstance(name, dict | list):
                    raise _unusable(key, "a key must be text")
                name = orjson.dumps(name).decode()
            if name in own:
                hint = "; a second object begins with ---" if name == "apiVersion" else ""
                raise UnusableError(key.start_mark.line, f"duplicate key {name!r}{hint}")
            own[name] = self.value(self._next())
        return merged | own if merged else own

    def _grow(self, size: int) -> None:
        self._size += size
        if self._size > LARGEST:
            raise UnusableError(self._line, f"larger than {LARGEST} values")


def _scalar(event: Any) -> Any:
    tag, text = event.tag, event.value
    try:
        if tag is None:
            return _plain(text) if event.implicit[0] else text
        if tag in ("!", TEXT):
            return text
        if tag in CONVERSIONS:
            return _converted(tag, text)
    except (KeyError, ValueError) as error:
        raise _unusable(event, str(error)) from None
    raise _unusable(event, f"unknown tag {tag!r}")


# Cached, so that repeated texts, most of them keys, are stored once.
@lru_cache(maxsize=16_384)
def _plain(text: str) -> Any:
    tag = yaml_parsers.tag_of(text)
    return _converted(tag, text) if tag in CONVERSIONS else text


def _converted(tag: str, text: str) -> Any:
    value = CONVERSIONS[tag](yaml.ScalarNode(tag, text))
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError("number is too large")
        return int(value) if value.is_integer() else value
    return value


def _require(event: Any, kind: str) -> None:
    if event.tag not in (None, "!", f"{TAG}{kind}"):
        raise _unusable(event, f"unknown tag {event.tag!r}")


def _unusable(event: Any, problem: str) -> UnusableError:
    return UnusableError(event.start_mark.line, f"not YAML: {problem}")
