"""What a policy yields: violations, with an identity beside their words, and patches."""

import dataclasses
import json
import re
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import orjson

from kube.resource import FieldPath
from webhook.engine.record import Record

MAX_SHOWN = 256  # characters of a string that a message repeats
MAX_TEXT = 8 << 10  # characters of one message
JSON_TYPES: dict[type, str] = {dict: "an object", list: "a list", str: "a string"}
JSON_TYPES |= {bool: "a boolean", int: "an integer", float: "a number"}

Excess = int | Fraction | frozenset[str]
Words = tuple[str, str, int]  # where, the message, and how many bytes of JSON that has

UNSET: Any = object()  # stands for a value that is not given, where None is a value
PLACE = re.compile(  # which item of a list: an index, or a name that is not the key of its list
    r"(?<!labels)(?<!annotations)\[[0-9]+\]|(?:(?<=\bports)|(?<=\bvolumeMounts))\[name=[^]]+\]"
)


def shown(value: Any) -> str:
    """Return `value` as messages show it: strings quoted and cut, containers by their type."""
    if isinstance(value, str):
        value = value[: MAX_SHOWN + 1]  # a text may have megabytes
        text = orjson.dumps(value).decode() if value.isprintable() else json.dumps(value)
        return text if len(text) <= MAX_SHOWN else f'{text[:MAX_SHOWN]}…"'
    if isinstance(value, dict | list):
        return JSON_TYPES[type(value)]
    return str(value) if type(value) is int else json.dumps(value)


def one_line(text: str) -> str:
    """Return `text` cut to one line without control characters, as the API server needs it."""
    text = text if len(text) <= MAX_TEXT else f"{text[: MAX_TEXT - 1]}…"
    return "".join(char if char.isprintable() else " " for char in text)


class ChildField(NamedTuple):
    """The field of a planned child that breaks a rule, and which child that is."""

    kind: str
    namespace: str
    name: str
    path: str


@dataclass(slots=True, eq=False)
class Violation:
    """One violation: the field, what was found there, the rule, and the fix.

    `field` is a path below the record `holder`, or a whole path where there is none. `value` is the
    raw value found; `found` is how the message says it, None for the value itself. `rule` names the
    rule and nothing of the object. `excess` is how far the value goes beyond the rule, where that
    has an order: a number, or a set of names. `of` names the object where that is not the one that
    is judged but a planned child, as `Deployment/shop`; `child` is that child. `controller_fix` is
    the fix where the controller chose the value. `expired` names the exception that covered it.
    `mended` is a value of the field that mends it, None where the field must go; unset where no
    value is sure to. `id` identifies the rule where its words vary; `check` names the policy whose
    rule another applies.
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
    mended: Any = UNSET
    id: str = ""
    check: str = ""
    _words: Words | None = dataclasses.field(default=None, init=False, repr=False)

    @property
    def path(self) -> str:
        """The path of the field in its object."""
        return self.field if self.holder is None else self.holder.path(self.field)

    @property
    def words(self) -> Words:
        """What it says, worded once: an answer repeats a message up to three times."""
        if self._words is None:
            self._words = self._worded()
        return self._words

    @property
    def where(self) -> str:
        """The path as one line, after the name of the object where that is a planned child."""
        return self.words[0]

    @property
    def message(self) -> str:
        """The violation as one line, at most MAX_TEXT characters long."""
        return self.words[1]

    @property
    def found_text(self) -> str:
        """What was found, as a message says it."""
        return shown(self.value) if self.found is None else str(self.found)

    def _worded(self) -> Words:
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
        """Two violations are equal that say the same."""
        return isinstance(other, Violation) and self.message == other.message

    def __hash__(self) -> int:
        return hash(self.message)

    @property
    def key(self) -> tuple[str, str]:
        """What it is about: the record and its field, and the rule."""
        return self.path, self.id or self.rule

    @property
    def identity(self) -> tuple[str, str, Any]:
        """What makes it the same violation as before an update: field, rule, and value or excess.

        An item of a list without names is the same wherever in the list it is, and so is a port
        under another name.
        """
        path, rule = self.key
        value: Any = self.found if self.value is UNSET else self.value
        if self.excess is not None:
            value = self.excess
        is_json = isinstance(value, dict | list)
        text = json.dumps(value, sort_keys=True) if is_json else (type(value), value)
        return PLACE.sub("[]", path), rule, text


class Before:
    """The violations before an update, to compare those after it with."""

    def __init__(self, violations: Collection[Violation]) -> None:
        """Count them by identity: an object has room for a hundred thousand."""
        self._same = Counter(each.identity for each in violations)
        self._excess: dict[tuple[str, str], dict[int, Excess]] = {}
        self._compared: dict[tuple[int, int], bool] = {}
        for each in violations:
            if each.excess is not None:
                self._excess.setdefault(each.key, {})[id(each.excess)] = each.excess

    def holds(self, violation: Violation) -> bool:
        """Return whether it was there before: same identity, or same field and no more excess.

        Asked once for each violation after the update: of one identity there may be no more than
        before.
        """
        olds = self._excess.get(violation.key, {}).values() if violation.excess is not None else ()
        if any(self._is_no_more(violation.excess, old) for old in olds):
            return True
        self._same[violation.identity] -= 1
        return self._same[violation.identity] >= 0

    def _is_no_more(self, new: Any, old: Any) -> bool:
        """Compare two excesses once: many violations may share a set of ten thousand names."""
        pair = id(new), id(old)
        if pair not in self._compared:
            self._compared[pair] = bool(new <= old)
        return self._compared[pair]


@dataclass(slots=True)
class Patch:
    """One field to be set, its parents created where they are missing.

    What is set is kept, unless `overwrite`.

    `path` are steps below the record `holder`, or from the root of the object where there is none.
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
