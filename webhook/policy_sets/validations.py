"""One compiled validation: its violation, and whether it depends on the object alone."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from config.api.rules import Validation
from config.field_paths import STEP, value_at
from webhook.cel import PRESENCE, CelError, Frame, Program, Steps
from webhook.engine import Violation
from webhook.engine.request import what_is_written
from webhook.engine.violation import shown

MAX_MESSAGE = 5 * 1024  # bytes of a messageExpression's result; a longer result is ignored
# Fields of `request` that depend on the sender instead of the object.
OF_THE_SENDER = frozenset({"userInfo", "operation", "options", "dryRun"})


@dataclass(frozen=True, slots=True)
class CompiledValidation:
    """A compiled validation."""

    validation: Validation
    program: Program
    message: Program | None
    reads: tuple[Steps, ...]  # fields of the object, sorted; the object itself has no steps
    # Whether the result depends on the object alone, so that an update can tolerate a violation
    # that the old object has too.
    is_about_object: bool

    def beside_path(self, judged: dict[str, Any]) -> Iterator[Any]:
        """Yield the values of the fields that it reads besides the one at `path`, and below it.

        Of what `path` goes through, only the presence of fields, and of a map's keys, counts if it
        reads no more.
        """
        at = tuple(found[1] or found[2] for found in STEP.finditer(self.validation.path or ""))
        for steps in self.reads:
            length = steps.index(PRESENCE) if PRESENCE in steps else len(at) + 1
            is_has = len(steps) == length + 1
            if at[:length] == steps[:length] and (is_has or _is_key(at[length : length + 1])):
                present = (*steps[:length], *steps[length + 1 :])
                yield present == at[: len(present)] or _value(judged, present) is not None
            elif not at or steps[: len(at)] != at:
                yield _value(judged, steps)

    def compose_message(self, values: Frame) -> str:
        """Return the message of a violation."""
        text = ""
        if self.message is not None:
            with suppress(CelError):
                text = str(self.message.evaluate(values)).strip()
        if text and "\n" not in text and len(text.encode()) <= MAX_MESSAGE:
            return text
        text = (self.validation.message or "").strip()
        return text or f"failed expression: {self.program.source.strip()}"

    def violation(self, judged: dict[str, Any], values: Frame) -> Violation:
        """Return its violation, identified by the value at `path` and by others the rule reads.

        Each violation of a rule that does not depend on the object alone is a new one.
        """
        path = self.validation.path or ""
        value = value_at(judged, path) if path else None
        found = "" if not path else "missing" if value is None else shown(value)
        tested: Any = [value, *self.beside_path(judged)]
        if not self.is_about_object:
            tested = object()
        id = f"validation: {self.program.source}"
        return Violation(path, found, self.compose_message(values), "", value=tested, id=id)


def is_of_sender(steps: Steps) -> bool:
    """Return whether a field can differ between two requests with the same object."""
    if steps[0] == "request":
        return len(steps) == 1 or steps[1] in OF_THE_SENDER
    return steps[0] in ("oldObject", "authorizer")


def _is_key(step: Steps) -> bool:
    """Return whether a step of a path is a key of a map, and not an item of a list."""
    return bool(step) and not (step[0].isdigit() or "=" in step[0])


def _value(object: dict[str, Any], steps: Steps) -> Any:
    """Return the value of a field; for the object itself, the fields that its writers set.

    Where only a presence is read, this is the field as a whole.
    """
    if not steps:
        return what_is_written(object)
    value: Any = object
    for step in steps:
        if step == PRESENCE:
            break
        value = value.get(step) if isinstance(value, dict) else None
    return value
