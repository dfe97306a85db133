"""Convert Kyverno's patterns, with their anchors, to CEL.

A pattern passes, fails, or skips its rule (if the condition of an anchor does not hold). A pass or
a skip allows the object, so each pattern has two expressions. Source: validate.go,
anchor/handlers.go and pattern.go of kyverno 1.18.
"""

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from config.schemas import fields_of, parse_type
from gatewright.tools.cel_text import every, negate, present, select, some
from gatewright.tools.migrate.results import refuse
from gatewright.tools.migrate.scalars import ANY, scalar, takes_null

ANCHOR = re.compile(r"(?P<sort>[+<=X^]?)\((?P<key>.+)\)")


class PatternOutcome(NamedTuple):
    """Two expressions: the pattern passes; the pattern passes or skips its rule."""

    passes: str
    allowed: str

    @property
    def can_skip(self) -> bool:
        """Whether the two expressions differ."""
        return self.passes != self.allowed


class PatternValue(NamedTuple):
    """A value in CEL that a pattern is about, its type, and the number of loops around it."""

    text: str
    code: str = ANY
    depth: int = 0

    def field(self, key: str) -> "PatternValue":
        """Return a field of an object."""
        return PatternValue(select(self.text, key), field_type(self.code, key), self.depth)

    @property
    def item(self) -> "PatternValue":
        """The variable of a loop over the items of a list."""
        code = parse_type(self.code).inner if self.code else ANY
        name = f"each{self.depth + 1}" if self.depth else "each"
        return PatternValue(name, code, self.depth + 1)


def patterns_to_cel(patterns: Iterable[Any], root: str, code: str = ANY) -> str:
    """Return the test that patterns allow `root`, an object of the type `code`.

    One of them must pass; if one fails and none passes, a pattern that skips does not count.
    Raises NotEqualError if a pattern has no known equivalent.
    """
    outcomes = [_outcome(each, PatternValue(root, code)) for each in patterns]
    if len(outcomes) == 1:
        return outcomes[0].allowed
    skipped = (
        [every(each.allowed for each in outcomes)] if any(e.can_skip for e in outcomes) else []
    )
    return some([*(each.passes for each in outcomes), *skipped])


def field_type(code: str, key: str) -> str:
    """Return the type of a field; "" if it is unknown."""
    shape, inner, *_ = parse_type(code)
    if shape == "map":
        return inner
    with suppress(KeyError):
        return fields_of(inner).get(key, ANY) if shape == "struct" else ANY
    return ANY


def _outcome(pattern: Any, value: PatternValue) -> PatternOutcome:
    """Return the outcome of a pattern for an existing value."""
    shape = parse_type(value.code).shape if value.code else "any"
    if isinstance(pattern, Mapping):
        if shape in ("list", "scalar") or (shape == "any" and not pattern):
            refuse(f"{value.text} may not be an object, and the pattern {pattern!r} is one")
        return _of_object(pattern, value)
    if isinstance(pattern, list):
        if shape not in ("list", "any"):
            refuse(f"{value.text} is not a list, and the pattern {pattern!r} is one")
        return _of_list(pattern, value)
    return _of_test(_of_scalars(pattern, value))


def _of_test(text: str) -> PatternOutcome:
    """Return the outcome of a test that never skips the rule."""
    return PatternOutcome(text, text)


def _of_object(pattern: Mapping[str, Any], value: PatternValue) -> PatternOutcome:
    conditions, anchors, rest = list[str](), list[PatternOutcome](), list[PatternOutcome]()
    for key in sorted(pattern):
        match = ANCHOR.fullmatch(key)
        sort, name = (match["sort"], match["key"]) if match else (None, key)
        if "*" in name or "?" in name or "{{" in name:
            refuse(f"a key contains a wildcard or a variable: {key}")
        below, there, field = pattern[key], present(value.text, name), value.field(name)
        there_not = negate(there)
        if sort == "X":
            anchors.append(_of_test(there_not))
        elif sort == "^":
            anchors.append(_of_test(some([there_not, _existence(below, field, key)])))
        elif sort == "=":
            if _skips_all(below):
                refuse(f"the anchor {key} contains a global anchor")
            anchors.append(_if_missing(there_not, _outcome(below, field)))
        elif sort == "":
            conditions.append(every([there, _outcome(below, field).passes]))
        elif sort == "<":
            passes = some([there_not, _outcome(below, field).passes])
            rest.insert(0, PatternOutcome(passes, "true"))
        elif sort == "+":
            refuse(f"the anchor {key} is only for mutations")
        else:
            rest.insert(0 if _has_anchors(below) else len(rest), _of_field(below, there, field))
    return _join(conditions, anchors, _in_order(rest))


def _has_anchors(pattern: Any) -> bool:
    """Return whether a pattern has anchors, which Kyverno then evaluates before its siblings."""
    if isinstance(pattern, Mapping):
        return any(ANCHOR.fullmatch(key) or _has_anchors(e) for key, e in pattern.items())
    return isinstance(pattern, list) and any(map(_has_anchors, pattern))


def _skips_all(pattern: Any) -> bool:
    """Return whether a pattern has a global anchor outside of lists."""
    if not isinstance(pattern, Mapping):
        return False
    return any(key.startswith("<(") or _skips_all(each) for key, each in pattern.items())


def _of_field(pattern: Any, there: str, value: PatternValue) -> PatternOutcome:
    """Return the outcome for a field that may be missing, which counts as null."""
    if pattern == "*":
        return _of_test(there)
    outcome = _outcome(pattern, value)
    if not isinstance(pattern, Mapping | list) and takes_null(pattern):
        return _if_missing(negate(there), outcome)
    return PatternOutcome(*(every([there, each]) for each in outcome))


def _if_missing(there_not: str, outcome: PatternOutcome) -> PatternOutcome:
    """Return an outcome that also passes if the field is missing."""
    return PatternOutcome(*(some([there_not, each]) for each in outcome))


def _of_list(pattern: list[Any], value: PatternValue) -> PatternOutcome:
    if not pattern:
        refuse("an empty list in a pattern matches nothing")
    if isinstance(pattern[0], list):
        refuse("the pattern has a list of lists")
    if not isinstance(pattern[0], Mapping):
        return _of_test(_of_scalars(pattern[0], value._replace(code=value.code or "[")))
    item = value.item
    outcome = _outcome(pattern[0], item)
    allowed = f"{value.text}.all({item.text}, {outcome.allowed})"
    if not outcome.can_skip:
        return _of_test(allowed)
    one = some([f"{value.text}.size() == 0", f"{value.text}.exists({item.text}, {outcome.passes})"])
    return PatternOutcome(every([allowed, one]), allowed)


def _existence(pattern: Any, value: PatternValue, key: str) -> str:
    """Return the test that some item of a list matches, for each of several patterns."""
    if not isinstance(pattern, list) or not all(isinstance(each, Mapping) for each in pattern):
        refuse(f"{key} is not about a list of objects")
    item = value.item
    return every(
        f"{value.text}.exists({item.text}, {_outcome(item_pattern, item).passes})"
        for item_pattern in pattern
    )


def _of_scalars(pattern: Any, value: PatternValue) -> str:
    """Return the test that a scalar, or each item of a list, matches."""
    shape = parse_type(value.code).shape if value.code else "any"
    if shape in ("map", "struct"):
        refuse(f"{value.text} is an object, and the pattern {pattern!r} is not")
    if shape == "scalar":
        return scalar(value.text, pattern, value.code)
    item = value.item
    code = item.code if shape == "list" else ANY
    of_items = f"{value.text}.all({item.text}, {scalar(item.text, pattern, code)})"
    if shape == "list":
        return of_items
    return f"(type({value.text}) == list ? {of_items} : {scalar(value.text, pattern)})"


def _join(
    conditions: list[str], anchors: list[PatternOutcome], rest: PatternOutcome
) -> PatternOutcome:
    """Return the outcome of an object: its conditions, then anchors, then the other fields."""
    allowed = [each.allowed for each in anchors]
    if conditions or not any(each.can_skip for each in anchors):
        # Beside a condition that holds, Kyverno ignores an anchor that skips.
        passes = every([*conditions, *allowed, rest.passes])
        applied = every([*allowed, rest.allowed])
        return PatternOutcome(passes, some([negate(every(conditions)), applied]))
    one = some(each.passes for each in anchors)
    applied = every([*allowed, some([negate(one), rest.allowed])])
    return PatternOutcome(every([one, *allowed, rest.passes]), applied)


def _in_order(outcomes: list[PatternOutcome]) -> PatternOutcome:
    """Return the outcome of patterns in order: the first that fails or skips decides."""
    passes = allowed = "true"
    for outcome in reversed(outcomes):
        if outcome.can_skip and allowed != "true":
            allowed = every([outcome.allowed, some([negate(outcome.passes), allowed])])
        else:
            allowed = every([outcome.allowed, allowed])
        passes = every([outcome.passes, passes])
    return PatternOutcome(passes, allowed)
