"""One compiled validation: its violation, and whether it depends on the object alone."""

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from config.api.rules import Validation
from config.field_paths import STEP, value_at
from webhook.cel import CelError, Frame, Program, Steps
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

    @property
    def reads_beside_path(self) -> tuple[Steps, ...]:
        """The fields that it reads besides the one at `path`, those below it and its parent."""
        at = tuple(found[1] or found[2] for found in STEP.finditer(self.validation.path or ""))
        is_of_map = at and not (at[-1].isdigit() or "=" in at[-1])
        parent = at[:-1] if is_of_map else at
        return tuple(each for each in self.reads if each != parent and each[: len(at)] != at)

    def worded(self, values: Frame) -> str:
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
        beside = self.reads if value is None else self.reads_beside_path
        tested: Any = [value, *(_value(judged, steps) for steps in beside)]
        if not self.is_about_object:
            tested = object()
        id = f"validation: {self.program.source}"
        return Violation(path, found, self.worded(values), "", value=tested, id=id)


def is_of_sender(steps: Steps) -> bool:
    """Return whether a field can differ between two requests with the same object."""
    if steps[0] == "request":
        return len(steps) == 1 or steps[1] in OF_THE_SENDER
    return steps[0] in ("oldObject", "authorizer")


def _value(object: dict[str, Any], steps: Steps) -> Any:
    """Return the value of a field; for the object itself, the fields that its writers set."""
    if not steps:
        return what_is_written(object)
    value: Any = object
    for step in steps:
        value = value.get(step) if isinstance(value, dict) else None
    return value
