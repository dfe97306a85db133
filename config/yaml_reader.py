"""Reads the values of YAML and JSON documents as kubectl does, from parser events.

A document that tools read differently is an error, never a guess.
"""

import re
import struct
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import orjson
import yaml
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
from config.document_parts import DocumentPart, UnusableError, split
from config.yaml_scalars import DECIMAL, INTEGER, MERGE, ScalarError, resolve, resolve_tagged

# Keys and values of one document, with aliases expanded; no API object is nearly as large.
LARGEST = 2_000_000
# The share behind aliases that kubectl tolerates: of up to 400,000 keys and values 99 in 100, of
# 4,000,000 ten in 100. Source: allowedAliasRatio of go.yaml.in/yaml/v2.
FEW_VALUES, MANY_VALUES = 400_000, 4_000_000
MOST_ALIASED, LEAST_ALIASED = 0.99, 0.10
MARKED = re.compile(r"(?:&\S+\s+)?!\s")  # the tag that makes a scalar text
# Some parsers end a tag here, others do not.
GLUED = re.compile(r"(?:&\S+\s+)?!\S*[,\[\]]")
INNER_MARK = re.compile("^\ufeff", re.MULTILINE)
MORE = "not YAML: kubectl ignores what follows the end of a document; begin a document with ---"


class ReadValue(NamedTuple):
    """The value of a document, its part of the text, and line and column (from 0) of its root."""

    value: Any
    part: DocumentPart
    start: tuple[int, int]


def read_values(text: str) -> Iterator[ReadValue | UnusableError]:
    """Yield the value of each document that is not empty or null, or why it is unusable."""
    for part in split(text):
        try:
            read = _read_part(text, part)
            if read is not None and read.value is not None:
                _require_json(read)
                yield read
        except UnusableError as error:
            hint = "; a template must be rendered first" if "{{" in part.text(text) else ""
            yield UnusableError(error.line, f"{error}{hint}")
        except RecursionError:
            yield UnusableError(part.line, "not YAML: nested too deeply")


def _read_part(text: str, part: DocumentPart) -> ReadValue | None:
    """Return the value of a document; None if it is empty. Raises UnusableError."""
    if part.fault is not None:
        raise part.fault
    if part.is_json:
        return ReadValue(part.value, part, (part.line, part.column))
    own = part.text(text)
    if not own.endswith("\n"):
        own += "\n"  # as kubectl: a block scalar at the end of a file shows it
    if mark := INNER_MARK.search(own):
        line = part.line + own.count("\n", 0, mark.start())
        raise UnusableError(line, "not YAML: a byte order mark inside a document; remove it")
    try:
        try:
            return _read(yaml_parsers.quick(own), own, part)
        except yaml.YAMLError:
            return _read(yaml_parsers.PlainParser(own), own, part)
    except yaml.reader.ReaderError as error:
        line = part.line + own.count("\n", 0, error.position)
        character = f"U+{ord(own[error.position]):04X}"
        raise UnusableError(line, f"not YAML: the control character {character}") from None
    except yaml.MarkedYAMLError as error:
        last = own.rstrip("\n").count("\n")  # an error at the end is behind the last line
        line = part.line + min(_line_of(error), last)
        problem = error.problem or error.context or ""
        if problem.startswith("expected '<document start>'"):
            raise UnusableError(line, MORE) from None
        raise UnusableError(line, f"not YAML: {problem}") from None


def _require_json(read: ReadValue) -> None:
    try:
        orjson.dumps(read.value)
    except orjson.JSONEncodeError as error:
        is_half = "surrogate" in str(error)
        hint = r"; write a character itself, not half of it (\ud83d)" if is_half else ""
        raise UnusableError(read.start[0], f"not JSON: {error}{hint}") from None


def _line_of(error: yaml.MarkedYAMLError) -> int:
    mark: Any = error.problem_mark or error.context_mark
    return int(mark.line) if mark else 0


def _read(parser: Any, text: str, part: DocumentPart) -> ReadValue | None:
    read = None
    while not isinstance(event := parser.get_event(), StreamEndEvent):
        if event.__class__ is not DocumentStartEvent:
            continue
        if read is not None:
            raise UnusableError(part.line + parser.peek_event().start_mark.line, MORE)
        root = parser.get_event()
        mark = root.start_mark
        value = _DocumentReader(parser, text, part.line).value(root)
        start = (part.line + mark.line, mark.column + (0 if mark.line else part.column))
        read = ReadValue(value, part, start)
    return read


class _DocumentReader:
    """Reads one document. Aliases share the value of the latest anchor of their name."""

    def __init__(self, parser: Any, text: str, line: int) -> None:
        self._next: Callable[[], Any] = parser.get_event
        self._text, self._line = text, line
        self._has_marks = MARKED.search(text) is not None
        self._size = self._aliased = 0  # keys and values in all, and those behind aliases
        self._anchors: dict[str, tuple[Any, int]] = {}  # the value, and its size

    def value(self, event: Any) -> Any:
        """Return the value that starts with this event."""
        before = self._size
        self._grow(1)
        kind = event.__class__
        if event.anchor is not None and kind in (MappingStartEvent, SequenceStartEvent):
            self._anchors.pop(event.anchor, None)  # an alias inside would contain itself
        if kind is ScalarEvent:
            value = self._scalar(event)
        elif kind is MappingStartEvent:
            self._require_blank(event)
            value = self._mapping()
        elif kind is SequenceStartEvent:
            self._require_blank(event)
            value = []
            while (item := self._next()).__class__ is not SequenceEndEvent:
                value.append(self.value(item))
        elif event.anchor in self._anchors:
            value, size = self._anchors[event.anchor]
            self._grow(size)
            self._aliased += size
            self._require_own_values(event)
            return value
        else:
            raise self._unusable(event, f"found undefined alias {event.anchor!r}")
        # An anchor of the same name inside is later.
        if event.anchor is not None and (kind is ScalarEvent or event.anchor not in self._anchors):
            self._anchors[event.anchor] = value, self._size - before
        return value

    def _mapping(self) -> dict[str, Any]:
        own, merged = dict[str, Any](), dict[str, Any]()
        while (key := self._next()).__class__ is not MappingEndEvent:
            if _is_merge(key):
                self._merge(key, own, merged)
                continue
            is_plain = key.__class__ is ScalarEvent and key.anchor is None
            self._size += is_plain  # other keys are counted as values
            key_value = self._scalar(key) if is_plain else self.value(key)
            try:
                name = _key_text(key_value, key.value if key.__class__ is ScalarEvent else "")
            except ScalarError as error:
                raise self._unusable(key, str(error)) from None
            if name in own:
                hint = "; a second object begins with ---" if name == "apiVersion" else ""
                raise UnusableError(self._line_of(key), f"duplicate key {name!r}{hint}")
            own[name] = self.value(self._next())
        return merged | own if merged else own

    def _merge(self, key: Any, own: dict[str, Any], merged: dict[str, Any]) -> None:
        """Add the fields of a merge key: kubectl lets it win over keys before it, kustomize not."""
        value = self.value(self._next())
        added = dict[str, Any]()
        for mapping in value if isinstance(value, list) else (value,):
            if not isinstance(mapping, dict):
                raise self._unusable(key, "<< must be an object, or a list of objects")
            added = {**mapping, **added}
        before = merged | own
        for name, item in added.items():
            if name in before and _is_other(before[name], item):
                where = "<< changes"
                raise self._unusable(
                    key,
                    f"{where} the key {name!r} before it, in some tools only; write << first, once",
                )
        merged |= added

    def _scalar(self, event: Any) -> Any:
        tag = event.tag
        try:
            if tag is None:
                is_plain = event.implicit[0] and not event.style
                # libyaml leaves the tag `!` out of its event.
                is_text = not is_plain or (self._has_marks and self._is(event, MARKED))
                return event.value if is_text else resolve(event.value)
            self._require_blank(event)
            return resolve_tagged(tag, event.value)
        except ScalarError as error:
            raise self._unusable(event, str(error)) from None

    def _require_blank(self, event: Any) -> None:
        if event.tag is not None and self._is(event, GLUED):
            raise self._unusable(event, "a tag must be followed by a blank")

    def _is(self, event: Any, expression: re.Pattern[str]) -> bool:
        """Whether the text of an event begins with the expression."""
        written = self._text[event.start_mark.index : event.end_mark.index + 1]
        return expression.match(written) is not None

    def _grow(self, size: int) -> None:
        self._size += size
        if self._size > LARGEST:
            raise UnusableError(self._line, f"larger than {LARGEST} keys and values")

    def _require_own_values(self, event: Any) -> None:
        """Raise UnusableError where kubectl refuses a document for its aliases."""
        if self._aliased <= 100 or self._size <= 1000:
            return
        beyond = max(self._size - FEW_VALUES, 0) / (MANY_VALUES - FEW_VALUES)
        allowed = MOST_ALIASED - (MOST_ALIASED - LEAST_ALIASED) * min(beyond, 1)
        if self._aliased > allowed * self._size:
            raise self._unusable(event, "document contains excessive aliasing; write it out")

    def _line_of(self, event: Any) -> int:
        return self._line + int(event.start_mark.line)

    def _unusable(self, event: Any, problem: str) -> UnusableError:
        return UnusableError(self._line_of(event), f"not YAML: {problem}")


def _is_other(before: Any, after: Any) -> bool:
    """Whether two values differ; True is not 1."""
    return repr(before) != repr(after)


def _is_merge(event: Any) -> bool:
    """Whether a key is the merge key."""
    return (
        event.__class__ is ScalarEvent
        and event.value == "<<"
        and (event.implicit[0] or event.tag == MERGE)
    )


def _key_text(key: Any, written: str) -> str:
    """Return a key as text, as sigs.k8s.io/yaml does; `written` is a number's text.

    Raises ScalarError if there is none.
    """
    match key:
        case str():
            return key
        case bool():
            return "true" if key else "false"
        case int() | float():
            plain = written.replace("_", "")
            if isinstance(key, int) and INTEGER.fullmatch(plain):
                return str(key)
            if DECIMAL.fullmatch(plain):
                return _float_text(float(plain))
    raise ScalarError("a key must be text")


def _float_text(value: float) -> str:
    """Return the shortest decimal text of a 32-bit float, which is what Go writes for a key."""
    (rounded,) = struct.unpack("f", struct.pack("f", value)) if abs(value) < 1e30 else (0.0,)
    if 1e-4 <= abs(rounded) < 1e6:
        for digits in range(1, 10):
            text = f"{rounded:.{digits}g}"
            if struct.unpack("f", struct.pack("f", float(text)))[0] == rounded and "e" not in text:
                return text
    raise ScalarError("tools write this number differently as a key; write it in quotes")
