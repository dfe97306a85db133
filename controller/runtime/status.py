"""What a status says after a plan was carried out: pure functions over the plan and what failed."""

import re
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from pydantic import ValidationError

from controller.runtime.conditions import READY, condition, dated, of_type
from controller.runtime.plan import Object, Plan, Problem, Step, incomplete
from controller.runtime.result import TerminalError
from kube.errors import ApiError

FAILED = "Failed"
PLAN_FAILED = "PlanFailed"  # the reason of a mistake in the code, not in the object
ADDRESS = re.compile(r" at 0x[0-9a-f]+")  # of a Python object: another one at each try
QUOTED = 200  # characters of an exception's text
REASON = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?")  # what a condition takes: no sentence of some webhook
READIED = frozenset({"Updating", "Degraded"})  # reasons of an object that was ready before


class Failure(NamedTuple):
    """A step that could not be done."""

    step: Step
    error: Exception

    @property
    def is_permanent(self) -> bool:
        """Whether only a change can mend it."""
        if isinstance(self.error, ApiError):
            return not self.error.retryable
        return isinstance(self.error, TerminalError)

    @property
    def problem(self) -> Problem:
        """The failure as a condition says it, in the one line that a column shows: first what was being done."""
        reason, said = type(self.error).__name__.removesuffix("Error"), str(self.error)
        if isinstance(self.error, ApiError):
            reason, said = self.error.reason or "ReconcileFailed", self.error.message
            if not REASON.fullmatch(reason):
                reason = type(self.error).__name__
        return Problem(f"{self.step.failed_to}: {' '.join(said.splitlines())}", reason)


def status_of(plan: Plan, failures: Sequence[Failure], stored: Object, *, generation: int, now: datetime) -> Object:
    """Return the status of an object whose plan was carried out, as far as that went."""
    old = stored.get("conditions") or []
    status = plan.status.to_api()
    failed = {each.step.name: each.problem for each in failures} if failures else {}
    if "phase" in status and (plan.problem or (failures and any(each.is_permanent for each in failures))):
        status["phase"] = FAILED
    elif failures and plan.failing:
        status["phase"] = plan.failing
    is_new = stored.get("observedGeneration") != generation
    conditions = [
        *(status.get("conditions") or ()),
        *[_of_step(each, failed.get(each.name), old, is_new=is_new) for each in plan.steps if each.condition],
        _ready(plan, failures, old, is_new=is_new),
    ]
    return {
        **status,
        "observedGeneration": generation,
        "conditions": dated(conditions, old, generation=generation, now=now),
    }


def says(stored: Object, status: Object) -> bool:
    """Tell whether a stored status says just this, beside conditions of other types that are somebody else's.

    All that we write speaks of one generation: a condition that does not speak of this one is none that we wrote last.
    """
    conditions = stored.get("conditions") or ()
    if len(conditions) <= len(status["conditions"]):
        return stored == status
    types, generation = {each["type"] for each in status["conditions"]}, status["observedGeneration"]
    ours = [each for each in conditions if each["type"] in types or each.get("observedGeneration") == generation]
    return {**stored, "conditions": ours} == status


def unreadable(error: ValidationError) -> Problem:
    """Return the problem of a stored object that is not what its type says, naming each field."""
    faults = [(".".join(map(str, each["loc"])), each) for each in error.errors(include_input=False)]
    if missing := [path for path, each in faults if each["type"] == "missing"]:
        return incomplete(*missing)
    return Problem("; ".join(f"{path}: {each['msg']}" for path, each in faults), "Invalid")


def mistaken(kind: str, error: Exception) -> Problem:
    """Return the problem of an object whose plan met an exception that nobody meant to raise.

    Of its text the first line, shortened: what follows often quotes whole objects.
    """
    said, name = ADDRESS.sub("", str(error).strip().partition("\n")[0]), type(error).__name__
    what = f"{name}: {said[:QUOTED]}{'…' if len(said) > QUOTED else ''}" if said else name
    whose = "a mistake in the code, of which the controller's log has the traceback"
    return Problem(f"failed to plan {kind}: {what}; {whose}; tried again up to every five minutes", PLAN_FAILED)


def status_of_unplanned(
    problem: Problem, stored: Object, *, shows_phase: bool, generation: int, now: datetime
) -> Object:
    """Return the status of an object that no plan can be made for: what was observed stays, and its phase is Failed.

    It has a phase where it had one, or where its kind `shows_phase`.
    """
    old = stored.get("conditions") or []
    others = [each for each in old if each["type"] != READY]
    ready = condition(READY, False, problem.reason, problem.message)
    return {
        **stored,
        **({"phase": FAILED} if shows_phase or "phase" in stored else {}),
        "observedGeneration": generation,
        "conditions": [*others, *dated([ready], old, generation=generation, now=now)],
    }


def _of_step(step: Step, failed: Problem | None, old: Sequence[Object], *, is_new: bool) -> Object:
    """Return the condition that a step has of its own."""
    if problem := failed or (None if step.holds else step.problem):
        return condition(step.condition, False, problem.reason, problem.message)
    said = step.note if isinstance(step.note, str) else ""
    if step.holds:
        return condition(step.condition, True, "Ready", said)
    reason = _waiting_reason(of_type(step.condition, old), is_new=is_new)
    return condition(step.condition, False, reason, said or f"waiting for {step.name}")


def _ready(plan: Plan, failures: Sequence[Failure], old: Sequence[Object], *, is_new: bool) -> Object:
    if plan.problem:
        return condition(READY, False, plan.problem.reason, plan.problem.message)
    if failures:
        failed = failures[0].problem
        return condition(READY, False, failed.reason, failed.message)
    missing, said = [], ""
    for step in plan.steps:
        if not step.holds:
            if problem := step.problem:
                return condition(READY, False, problem.reason, problem.message)
            missing.append(step.name)
            if step.note and not (said or step.condition):
                said = f": {step.note}"
    if missing:
        reason = _waiting_reason(of_type(READY, old), is_new=is_new)
        return condition(READY, False, reason, f"waiting for {', '.join(missing)}{said}")
    return condition(READY, True, "AllReady")


def _waiting_reason(old: Object | None, *, is_new: bool) -> str:
    """Tell apart what is being made, what is being changed, and what was ready and is not any more."""
    if old is None or not was_ready(old):
        return "Progressing"
    return "Updating" if is_new or old.get("reason") == "Updating" else "Degraded"


def was_ready(ready: Object | None) -> bool:
    """Tell whether an object with this condition Ready is ready, or was before."""
    return ready is not None and (ready["status"] == "True" or ready["reason"] in READIED)
