"""The results of a policy: violations, whose identity is separate from their text, and patches.

Both are about a `Record`: a JSON object with its location, as a path for messages and steps for
patches.
"""

import dataclasses
import json
import re
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

import orjson

from kube.resource import FieldPath

# Characters of an item's name; no kind of the API has longer names.
LONGEST_NAME = 253


@lru_cache(maxsize=4096)
def steps_of(path: str) -> tuple[str, ...]:
    """Return the steps of a dotted path; cached."""
    return tuple(path.split(".")) if path else ()


class Record:
    """One JSON object and its location, which becomes text only in a message."""

    __slots__ = ("above", "step", "value")

    def __init__(
        self, value: dict[str, Any], above: "Record | None" = None, step: str | tuple[str, int] = ""
    ) -> None:
        """Wrap `value` at `step` below `above`: a dotted path, or a list's path and index."""
        self.value = value
        self.above = above
        self.step = step

    def path(self, relative: str = "") -> str:
        """Return the path of this object, or of its field `relative`, for messages."""
        path = self.step
        if isinstance(path, tuple):
            name = self.value.get("name")
            is_name = isinstance(name, str) and 0 < len(name) <= LONGEST_NAME and name.isprintable()
            path = f"{path[0]}[name={name}]" if is_name else f"{path[0]}[{path[1]}]"
        if relative:
            path = f"{path}.{relative}" if path else relative
        return path if self.above is None else self.above.path(path)

    def steps(self) -> FieldPath:
        """Return the path of this object as the steps of a patch; its keys have no dots."""
        step = self.step
        above = () if self.above is None else self.above.steps()
        if isinstance(step, tuple):
            return *above, *steps_of(step[0]), step[1]
        return *above, *steps_of(step)


MAX_SHOWN = 256  # characters of a string that a message repeats
MAX_TEXT = 8 << 10  # characters of one message
JSON_TYPES: dict[type, str] = {dict: "an object", list: "a list", str: "a string"}
JSON_TYPES |= {bool: "a boolean", int: "an integer", float: "a number"}

Excess = int | Fraction | frozenset[str]
Words = tuple[str, str, int]  # path, message, and the message's size in bytes of JSON

UNSET: Any = object()  # marks a missing value, where None is a valid value
PLACE = re.compile(  # a list item: its index, or a name that is not the key of its list
    r"(?<!labels)(?<!annotations)\[[0-9]+\]|(?:(?<=\bports)|(?<=\bvolumeMounts))\[name=[^]]+\]"
)


def shown(value: Any) -> str:
    """Return `value` for messages: strings quoted and shortened, containers by their type."""
    if isinstance(value, str):
        value = value[: MAX_SHOWN + 1]  # a string may have megabytes
        text = orjson.dumps(value).decode() if value.isprintable() else json.dumps(value)
        return text if len(text) <= MAX_SHOWN else f'{text[:MAX_SHOWN]}…"'
    if isinstance(value, dict | list):
        return JSON_TYPES[type(value)]
    return str(value) if type(value) is int else json.dumps(value)


def one_line(text: str) -> str:
    """Return `text` as one line without control characters, as the API server requires."""
    text = text if len(text) <= MAX_TEXT else f"{text[: MAX_TEXT - 1]}…"
    return "".join(char if char.isprintable() else " " for char in text)


class ChildField(NamedTuple):
    """The field of a planned child that breaks a rule, and the child."""

    kind: str
    namespace: str
    name: str
    path: str


@dataclass(slots=True, eq=False)
class Violation:
    """One violation: the field, the value found, the rule, and the fix.

    `field` is a path below the record `holder`, or a whole path without one. `value` is the raw
    value; `found` is its text in the message, None for the value itself. `rule` is the text of the
    rule, without data of the object. `excess` is the amount by which the value exceeds the rule, if
    there is an order: a number, or a set of names. `of` names a planned child that was judged
    instead of the object, such as `Deployment/shop`; `child` is that child. `controller_fix` is the
    fix if the controller chose the value. `expired` names the exception that covered it until it
    expired. `fix_value` is a value that fixes the violation, None if the field must be removed, and
    unset if no such value is known. `id` identifies the rule if its text varies; `check` names the
    policy whose rule another policy applies.
    """

    field: str
    found: str | int | None
    rule: str
    fix: str
    excess: Excess | None = None
    value: Any = UNSET
    holder: Record | None = None
    of: str = ""
    child: ChildField | None = None
    controller_fix: str = ""
    expired: str = ""
    fix_value: Any = UNSET
    id: str = ""
    check: str = ""
    _words: Words | None = dataclasses.field(default=None, init=False, repr=False)

    @property
    def path(self) -> str:
        """The path of the field in its object."""
        return self.field if self.holder is None else self.holder.path(self.field)

    @property
    def words(self) -> Words:
        """Path, message and size, computed once: an answer repeats a message up to three times."""
        if self._words is None:
            self._words = self._word()
        return self._words

    @property
    def where(self) -> str:
        """The path as one line, with the name of a planned child before it."""
        return self.words[0]

    @property
    def message(self) -> str:
        """The violation as one line, at most MAX_TEXT characters long."""
        return self.words[1]

    @property
    def found_text(self) -> str:
        """The value found, as text for the message."""
        return shown(self.value) if self.found is None else str(self.found)

    def _word(self) -> Words:
        path = self.path
        where = f"{self.of}: {path}" if self.of and path else self.of or path
        message = f"{self.rule}. {self.fix[:1].upper()}{self.fix[1:]}." if self.fix else self.rule
        if path:
            message = f"{where}: {self.found_text}; {message}"
        elif where:
            message = f"{where}: {message}"
        if len(message) > MAX_TEXT or not message.isprintable():
            where, message = one_line(where), one_line(message)
        return where, message, len(orjson.dumps(message))

    def __eq__(self, other: object) -> bool:
        """Return whether two violations have the same text."""
        return isinstance(other, Violation) and self.message == other.message

    def __hash__(self) -> int:
        return hash(self.message)

    @property
    def key(self) -> tuple[str, str]:
        """The record with its field, and the rule."""
        return self.path, self.id or self.rule

    @property
    def identity(self) -> tuple[str, str, Any]:
        """The identity that updates compare: field, rule, and value or excess.

        The index of a list item without a name does not matter, and neither does the name of a
        port.
        """
        value: Any = self.found if self.value is UNSET else self.value
        if self.excess is not None:
            value = self.excess
        is_json = isinstance(value, dict | list)
        text = json.dumps(value, sort_keys=True) if is_json else (type(value), value)
        return *_place(self), text


def _place(violation: Violation) -> tuple[str, str]:
    """Return the field, without the index of a list item, and the rule."""
    path, rule = violation.key
    return PLACE.sub("[]", path), rule


class Before:
    """The violations before an update, compared with those after it."""

    def __init__(self, violations: Collection[Violation]) -> None:
        """Count them by identity: an object can have a hundred thousand."""
        self._same = Counter(each.identity for each in violations)
        self._excess: dict[tuple[str, str], dict[int, Excess]] = {}
        self._left = Counter(_place(each) for each in violations if each.excess is not None)
        self._compared: dict[tuple[int, int], bool] = {}
        for violation in violations:
            if violation.excess is not None:
                self._excess.setdefault(violation.key, {})[id(violation.excess)] = violation.excess

    def holds(self, violation: Violation) -> bool:
        """Return whether a violation existed: same identity, or same field and no more excess.

        Called once for each violation after the update, since their number may not increase: per
        identity, or per field and rule where they have an excess.
        """
        if violation.excess is None:
            self._same[violation.identity] -= 1
            return self._same[violation.identity] >= 0
        olds = self._excess.get(violation.key, {}).values()
        is_no_more = any(self._is_no_more(violation.excess, old) for old in olds)
        if not is_no_more and not self._same[violation.identity]:
            return False
        self._left[_place(violation)] -= 1
        return self._left[_place(violation)] >= 0

    def _is_no_more(self, new: Any, old: Any) -> bool:
        """Compare two excesses, cached: many violations may share a set of ten thousand names."""
        pair = id(new), id(old)
        if pair not in self._compared:
            self._compared[pair] = bool(new <= old)
        return self._compared[pair]


@dataclass(slots=True)
class Patch:
    """Sets one field, and creates missing parents.

    An existing value is kept unless `overwrite`. `path` are steps below the record `holder`, or
    from the root of the object without one.
    """

    path: FieldPath
    value: Any  # UNSET removes the field
    overwrite: bool = False
    holder: Record | None = None

    @property
    def steps(self) -> FieldPath:
        """The steps from the root of the object."""
        return self.path if self.holder is None else (*self.holder.steps(), *self.path)


Violations = Iterator[Violation]  # what `validate` yields
Patches = Iterator[Patch]  # what `mutate` yields
