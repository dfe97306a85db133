"""Convert Kyverno's patterns, with their anchors, to CEL.

A pattern passes, fails, or skips its rule (if the condition of an anchor does not hold). A pass or
a skip allows the object, so each pattern has two expressions. Source: validate.go,
anchor/handlers.go and pattern.go of kyverno 1.16.
"""

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from config.schemas import fields_of, parse_type
from gatewright.migrate.celtext import every, negated, present, select, some
from gatewright.migrate.results import refuse
from gatewright.migrate.scalars import ANY, scalar, takes_null

ANCHOR = re.compile(r"(?P<sort>[+<=X^]?)\((?P<key>.+)\)")


class PatternOutcome(NamedTuple):
    """Two expressions: the pattern passes; the pattern passes or skips its rule."""

    passes: str
    allowed: str

    @property
    def can_skip(self) -> bool:
        """Whether the two expressions differ."""
        return self.passes != self.allowed


def pattern_to_cel(pattern: Any, root: str, code: str = ANY) -> str:
    """Return the test that a pattern allows `root`, an object of the type `code`.

    Raises NotEqualError if the pattern has no known equivalent.
    """
    return _Patterns().node(pattern, root, code).allowed


def field_type(code: str, key: str) -> str:
    """Return the type of a field; "" if it is unknown."""
    shape, inner, *_ = parse_type(code)
    if shape == "map":
        return inner
    with suppress(KeyError):
        return fields_of(inner).get(key, ANY) if shape == "struct" else ANY
    return ANY


class _Patterns:
    """Converts one pattern; counts the variables of its macros."""

    def __init__(self) -> None:
        self._depth = 0

    def node(self, pattern: Any, value: str, code: str) -> PatternOutcome:
        """Return the outcome for an existing value."""
        if isinstance(pattern, Mapping):
            return self._map(pattern, value, code)
        if isinstance(pattern, list):
            return self._list(pattern, value, code)
        text = self._items(pattern, value, code)
        return PatternOutcome(text, text)

    def _map(self, pattern: Mapping[str, Any], value: str, code: str) -> PatternOutcome:
        conditions, anchors, fields = (
            list[str](),
            list[PatternOutcome](),
            list[tuple[str, PatternOutcome]](),
        )
        for key in sorted(pattern):
            found = ANCHOR.fullmatch(key)
            sort, name = (found["sort"], found["key"]) if found else (None, key)
            if "*" in name or "?" in name or "{{" in name:
                refuse(f"the key {key} has a wildcard or a variable")
            below, child = pattern[key], field_type(code, name)
            if sort in ("=", "^", "X"):
                anchors.append(self._anchor(sort, below, value, name, child))
                continue
            there = present(value, name)
            of_value = self.node(below, select(value, name), child)
            if sort == "":
                conditions.append(every([there, of_value.passes]))
            elif sort == "<":
                conditions.append(some([negated(there), of_value.passes]))
            elif sort is None:
                fields.append((name, self._field(below, value, name, of_value)))
            else:
                refuse(f"the anchor {key} is one of mutations")
        return _of_map(conditions, anchors, [each for _, each in fields])

    def _anchor(self, sort: str, pattern: Any, value: str, key: str, code: str) -> PatternOutcome:
        """Return the outcome of an anchor on a field that may be missing."""
        there_not = negated(present(value, key))
        if sort == "X":
            return PatternOutcome(there_not, there_not)
        if sort == "^":
            return self._existence(pattern, value, key, code)
        found = self.node(pattern, select(value, key), code)
        return PatternOutcome(*(some([there_not, each]) for each in found))

    def _field(self, pattern: Any, value: str, key: str, found: PatternOutcome) -> PatternOutcome:
        """Return the outcome for a field that may be missing, which counts as null."""
        there = present(value, key)
        if pattern == "*":
            return PatternOutcome(there, there)
        if not isinstance(pattern, Mapping | list) and takes_null(pattern):
            return PatternOutcome(*(some([negated(there), each]) for each in found))
        return PatternOutcome(*(every([there, each]) for each in found))

    def _list(self, pattern: list[Any], value: str, code: str) -> PatternOutcome:
        if not pattern:
            refuse("an empty list in a pattern matches nothing")
        if isinstance(pattern[0], list):
            refuse("a list of lists")
        if not isinstance(pattern[0], Mapping):
            text = self._items(pattern[0], value, code or "[")
            return PatternOutcome(text, text)
        name = self._variable()
        found = self.node(pattern[0], name, parse_type(code).inner if code else ANY)
        self._depth -= 1
        allowed = f"{value}.all({name}, {found.allowed})"
        if not found.can_skip:
            return PatternOutcome(allowed, allowed)
        one = some([f"{value}.size() == 0", f"{value}.exists({name}, {found.passes})"])
        return PatternOutcome(every([allowed, one]), allowed)

    def _existence(self, pattern: Any, value: str, key: str, code: str) -> PatternOutcome:
        if not isinstance(pattern, list) or not all(isinstance(each, Mapping) for each in pattern):
            refuse(f"^({key}) is not about a list of objects")
        name, found = self._variable(), list[str]()
        for each in pattern:
            item = self.node(each, name, parse_type(code).inner if code else ANY)
            found.append(f"{select(value, key)}.exists({name}, {item.passes})")
        self._depth -= 1
        text = some([negated(present(value, key)), every(found)])
        return PatternOutcome(text, text)

    def _items(self, pattern: Any, value: str, code: str) -> str:
        """Return the test that a scalar, or each item of a list, matches."""
        shape = parse_type(code).shape if code else "any"
        if shape in ("map", "struct"):
            refuse(f"{value} is an object, and the pattern {pattern!r} is none")
        if shape == "scalar":
            return scalar(value, pattern, code)
        name = self._variable()
        inner = scalar(name, pattern, parse_type(code).inner if shape == "list" else ANY)
        self._depth -= 1
        if shape == "list":
            return f"{value}.all({name}, {inner})"
        of_one = scalar(value, pattern, ANY)
        return f"(type({value}) == list ? {value}.all({name}, {inner}) : {of_one})"

    def _variable(self) -> str:
        self._depth += 1
        return "each" if self._depth == 1 else f"each{self._depth}"


def _of_map(
    conditions: list[str], anchors: list[PatternOutcome], fields: list[PatternOutcome]
) -> PatternOutcome:
    """Return the outcome of a map: its conditions, then anchors, then fields by name."""
    nested = [each for each in reversed(fields) if each.can_skip]
    plain = [each for each in fields if not each.can_skip]
    rest = _in_order([*nested, *plain])
    passing = every([*conditions, *(each.passes for each in anchors), rest.passes])
    allowed = [each.allowed for each in anchors]
    if conditions or not any(each.can_skip for each in anchors):
        applied = every([*allowed, rest.allowed])
    else:
        none = negated(some(each.passes for each in anchors))
        applied = every([*allowed, some([none, rest.allowed])])
        passing = every([some(each.passes for each in anchors), *allowed, rest.passes])
    if not conditions:
        return PatternOutcome(passing, applied)
    return PatternOutcome(passing, some([negated(every(conditions)), applied]))


def _in_order(outcomes: list[PatternOutcome]) -> PatternOutcome:
    """Return the outcome of patterns in order: the first that fails or skips decides."""
    passes = allowed = "true"
    for each in reversed(outcomes):
        if each.can_skip and allowed != "true":
            allowed = every([each.allowed, some([negated(each.passes), allowed])])
        else:
            allowed = every([each.allowed, allowed])
        passes = every([each.passes, passes])
    return PatternOutcome(passes, allowed)
