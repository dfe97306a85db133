"""The status after a plan was executed: conditions and phase, as pure functions."""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, NamedTuple

from pydantic import ValidationError

from controller.runtime.conflict_backoff import ContestedError
from controller.runtime.plan import Plan, Problem, Step, incomplete
from controller.runtime.types import TerminalError
from kube.errors import (
    AlreadyExists,
    ApiError,
    Conflict,
    ServerError,
    TooManyRequests,
    Unreachable,
    is_of_ended_namespace,
)
from kube.resource import JsonObject

READY = "Ready"
FAILED = "Failed"
# the reason for an exception in the planner, an error of the code, not of the object
PLAN_FAILED = "PlanFailed"
MAX_MESSAGE = 1024
MAX_QUOTED = 200  # characters of an exception's text
# The address of a Python object, which differs in each attempt.
ADDRESS = re.compile(r" at 0x[0-9a-f]+")
REASON = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?")  # valid reasons of a condition
REASONS_AFTER_READY = frozenset({"Updating", "Degraded"})


class Failure(NamedTuple):
    """A step that failed."""

    step: Step
    error: Exception

    @property
    def is_permanent(self) -> bool:
        """Whether only a change of the object can fix it."""
        return isinstance(self.error, TerminalError) or (
            isinstance(self.error, ApiError) and not self.error.retryable
        )

    @property
    def is_transient(self) -> bool:
        """Whether it is a failure of the API server or its namespace's end, not of the object."""
        return is_of_ended_namespace(self.error) or isinstance(
            self.error, TooManyRequests | ServerError | Unreachable | Conflict | AlreadyExists
        )

    @property
    def problem(self) -> Problem:
        """The failure as a problem for a condition; its text begins with the attempted action."""
        reason, text = type(self.error).__name__.removesuffix("Error"), str(self.error)
        if isinstance(self.error, ApiError):
            text, given = self.error.message, self.error.reason or "ReconcileFailed"
            reason = given if REASON.fullmatch(given) else type(self.error).__name__
        if isinstance(self.error, ContestedError):  # the child exists; the message says it all
            return Problem(text, reason)
        return Problem(f"{self.step.failed_to}: {' '.join(text.splitlines())}", reason)


def status_of(
    plan: Plan,
    failures: Sequence[Failure],
    stored: JsonObject,
    obstacles: Mapping[str, Problem] = MappingProxyType({}),
    *,
    generation: int,
    now: datetime,
) -> JsonObject:
    """Return the status of an object whose plan was executed, completely or in part.

    `obstacles` are the known reasons why steps are not ready, by the step's name.
    """
    old = stored.get("conditions") or []
    status = plan.status.to_api()
    failed = {each.step.name: each.problem for each in failures}
    if "phase" in status and (plan.problem or any(each.is_permanent for each in failures)):
        status["phase"] = FAILED
    elif failures and plan.failing:
        status["phase"] = plan.failing
    is_new = stored.get("observedGeneration") != generation
    conditions = [
        *(status.get("conditions") or ()),
        *[
            _of_step(step, failed, obstacles, old, is_new=is_new)
            for step in plan.steps
            if step.condition
        ],
        _ready(plan, failures, obstacles, old, is_new=is_new),
    ]
    return {
        **status,
        "observedGeneration": generation,
        "conditions": date_conditions(conditions, old, generation=generation, now=now),
    }


def status_of_unplanned(
    problem: Problem, stored: JsonObject, *, shows_phase: bool, generation: int, now: datetime
) -> JsonObject:
    """Return the status of an object that cannot be planned: phase Failed, the rest unchanged.

    It has a phase if it had one, or if its kind `shows_phase`.
    """
    old = stored.get("conditions") or []
    others = [each for each in old if each["type"] != READY]
    ready = condition(READY, False, problem.reason, problem.message)
    return {
        **stored,
        **({"phase": FAILED} if shows_phase or "phase" in stored else {}),
        "observedGeneration": generation,
        "conditions": [*others, *date_conditions([ready], old, generation=generation, now=now)],
    }


def readable(status: Any) -> JsonObject:
    """Return a stored status without malformed fields; then it is written again."""
    if not isinstance(status, dict):
        return {}
    conditions = status.get("conditions")
    kept = [
        condition
        for condition in (conditions if isinstance(conditions, list) else ())
        if isinstance(condition, dict) and isinstance(condition.get("type"), str)
    ]
    return {**status, "conditions": kept} if "conditions" in status else status


def is_same(stored: JsonObject, status: JsonObject) -> bool:
    """Return whether a stored status is as desired.

    Conditions of other writers are ignored. All of the controller's conditions have one generation;
    a condition with another generation, or none, belongs to another writer.
    """
    desired = status.get("conditions") or ()  # none if the CRD does not declare them
    types = {each["type"] for each in desired}
    generations = {each.get("observedGeneration") for each in desired} - {None}
    own = [
        condition
        for condition in stored.get("conditions") or ()
        if condition["type"] in types or condition.get("observedGeneration") in generations
    ]
    return {**stored, "conditions": own} == {"conditions": [], **status}


def unreadable(error: ValidationError) -> Problem:
    """Return the problem of a stored object that its type rejects, with each invalid field."""
    faults = [(".".join(map(str, each["loc"])), each) for each in error.errors(include_input=False)]
    if missing := [path for path, each in faults if each["type"] == "missing"]:
        return incomplete(*missing)
    return Problem("; ".join(f"{path}: {each['msg']}" for path, each in faults), "Invalid")


def unplannable(kind: str, error: Exception) -> Problem:
    """Return the problem of an object whose planner raised an exception.

    It has the first line of the exception's text, shortened: further lines often quote whole
    objects.
    """
    name = type(error).__name__
    text = ADDRESS.sub("", str(error).strip().partition("\n")[0])
    if len(text) > MAX_QUOTED:
        text = f"{text[:MAX_QUOTED]}…"
    what = f"{name}: {text}" if text else name
    hint = (
        "internal error; the controller log has the traceback; retried at most every five minutes"
    )
    return Problem(f"failed to plan {kind}: {what}; {hint}", PLAN_FAILED)


def was_ready(ready: JsonObject | None) -> bool:
    """Return whether an object with this condition Ready is or was ready."""
    return ready is not None and (
        ready["status"] == "True" or ready["reason"] in REASONS_AFTER_READY
    )


def is_ready(status: JsonObject) -> bool:
    """Return whether a status has the condition Ready with status True."""
    return (ready_in(status) or {}).get("status") == "True"


def ready_in(status: JsonObject) -> JsonObject | None:
    """Return the condition Ready of a status."""
    return of_type(READY, status.get("conditions") or ())


def of_type(type: str, conditions: Sequence[JsonObject]) -> JsonObject | None:
    """Return the condition of a type."""
    return next((each for each in conditions if each["type"] == type), None)


def condition(type: str, holds: bool, reason: str, message: str = "") -> JsonObject:
    """Return a condition without the time of its last transition.

    `reason` is one word in CamelCase, `message` a sentence.
    """
    return {"type": type, "status": str(holds), "reason": reason, "message": message[:MAX_MESSAGE]}


def date_conditions(
    new: Sequence[JsonObject], old: Sequence[JsonObject], *, generation: int, now: datetime
) -> list[JsonObject]:
    """Return the new conditions with their generation and the time their status last changed."""
    dated = []
    for condition in new:
        before = of_type(condition["type"], old) or {}
        since = (
            before.get("lastTransitionTime")
            if before.get("status") == condition["status"]
            else None
        )
        dated.append(
            {
                **condition,
                "observedGeneration": generation,
                "lastTransitionTime": since or rfc3339(now),
            }
        )
    return dated


def rfc3339(moment: datetime) -> str:
    """Return a moment as the API's Time: UTC, whole seconds."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _of_step(
    step: Step,
    failed: Mapping[str, Problem],
    obstacles: Mapping[str, Problem],
    old: Sequence[JsonObject],
    *,
    is_new: bool,
) -> JsonObject:
    """Return a step's own condition; `failed` has the problem of each step that failed."""
    obstacle = obstacles.get(step.name)
    own = None if step.ready or obstacle else step.problem
    if problem := failed.get(step.name) or own:
        return condition(step.condition, False, problem.reason, problem.message)
    note = step.note if isinstance(step.note, str) else ""
    if step.ready:
        return condition(step.condition, True, "Ready", note)
    reason = _waiting_reason(of_type(step.condition, old), is_new=is_new)
    failed_before = [each for each in step.depends_on if each in failed]
    waiting = f"waiting for {', '.join(failed_before or [step.name])}"
    if obstacle:
        message = f"{note}; {obstacle.message}" if note else obstacle.message
        return condition(step.condition, False, obstacle.reason, message)
    return condition(step.condition, False, reason, note or waiting)


def _ready(
    plan: Plan,
    failures: Sequence[Failure],
    obstacles: Mapping[str, Problem],
    old: Sequence[JsonObject],
    *,
    is_new: bool,
) -> JsonObject:
    problem = plan.problem or (failures[0].problem if failures else None)
    waiting = [step for step in plan.steps if not step.ready]
    own = (each.problem for each in waiting if each.name not in obstacles)
    if problem := problem or next(filter(None, own), None):
        return condition(READY, False, problem.reason, problem.message)
    if waiting:
        reason = _waiting_reason(of_type(READY, old), is_new=is_new)
        notes = [each.note for each in waiting if isinstance(each.note, str) and not each.condition]
        texts = [*filter(None, notes)][:1]
        for step in waiting:
            if obstacle := obstacles.get(step.name):
                reason = obstacle.reason
                texts.append(obstacle.message)
                break
        names = ", ".join(each.name for each in waiting)
        message = f"waiting for {names}{': ' if texts else ''}{'; '.join(texts)}"
        return condition(READY, False, reason, message)
    return condition(READY, True, "AllReady")


def _waiting_reason(old: JsonObject | None, *, is_new: bool) -> str:
    """Return the reason of an object that is not ready: created, changed, or degraded."""
    if not was_ready(old):
        return "Progressing"
    return "Updating" if is_new or (old or {}).get("reason") == "Updating" else "Degraded"
