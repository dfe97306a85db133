"""The status after a plan was executed."""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from controller.runtime.plan import Plan, Problem, Step
from controller.runtime.status import (
    Failure,
    is_same,
    ready_in,
    status_of,
    status_of_unplanned,
    unplannable,
)
from kube.errors import ApiError, Forbidden, Invalid, ServerError

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
LATER = datetime(2026, 1, 2, 3, 5, 5, tzinfo=UTC)
STEP = Step("database", [], doing="failed to create database")


@dataclass
class Status:
    fields: dict[str, Any] = field(default_factory=lambda: {"phase": "Running"})

    def to_api(self) -> dict[str, Any]:
        """Return the status."""
        return self.fields


def written(
    *failures: Failure,
    ready: bool = True,
    problem: Problem | None = None,
    stored: dict[str, Any] | None = None,
    generation: int = 1,
    now: datetime = NOW,
) -> dict[str, Any]:
    """The status of a plan with one step."""
    plan = Plan((Step("database", [], ready=ready),), Status(), problem=problem)
    return status_of(plan, failures, stored or {}, generation=generation, now=now)


def ready(status: dict[str, Any]) -> tuple[str, str, str]:
    """The condition Ready."""
    found = ready_in(status)
    assert found is not None
    return found["status"], found["reason"], found["message"]


def test_ready_when_every_step_holds() -> None:
    """The condition has the observed generation and the time of its last change."""
    assert written(generation=7) == {
        "phase": "Running",
        "observedGeneration": 7,
        "conditions": [
            {
                "type": "Ready",
                "status": "True",
                "reason": "AllReady",
                "message": "",
                "observedGeneration": 7,
                "lastTransitionTime": "2026-01-02T03:04:05Z",
            }
        ],
    }


def test_the_time_moves_only_when_the_status_flips() -> None:
    """A second look that finds the same writes the same."""
    first = written()
    assert written(stored=first, now=LATER) == first
    flipped = ready_in(written(ready=False, stored=first, now=LATER))
    assert flipped is not None
    assert flipped["lastTransitionTime"] == "2026-01-02T03:05:05Z"


def test_a_reason_is_a_word_though_a_webhook_gave_a_sentence() -> None:
    """Many webhooks put their message there; the API server would reject a condition with it."""
    said = 'admission webhook "example.com" denied the request: no privileged pods!'
    denied = Forbidden(403, "no privileged pods!", said)
    assert ready(written(Failure(STEP, denied))) == (
        "False",
        "Forbidden",
        f"failed to create database: {said}",
    )
    quota = Forbidden(403, "QuotaExceeded", "too much")
    assert ready(written(Failure(STEP, quota)))[1] == "QuotaExceeded"


def test_a_message_is_one_line() -> None:
    """`kubectl get -o wide` would show only the first line of a message, such as of our denials."""
    denied = Forbidden(
        403, "Forbidden", "denied the request: 1 violation\n- service-types: spec.type: NodePort"
    )
    assert ready(written(Failure(STEP, denied)))[2] == (
        "failed to create database: denied the request: 1 violation - service-types: spec.type: NodePort"
    )


@pytest.mark.parametrize(
    ("stored", "generation", "reason"),
    [({}, 1, "Progressing"), (written(), 2, "Updating"), (written(), 1, "Degraded")],
)
def test_the_reason_for_waiting_depends_on_whether_it_was_ready_before(
    stored: dict[str, Any], generation: int, reason: str
) -> None:
    """Creation, change and failure have three different reasons."""
    status = written(ready=False, stored=stored, generation=generation)
    assert ready(status) == ("False", reason, "waiting for database")


def test_ready_has_the_progress_of_the_first_waiting_step() -> None:
    """Ready has the progress of the first step without its own condition."""
    note, steps = "1 of 3 replicas are ready", {}
    for name, condition, said in (
        ("secret", "", ""),
        ("database", "Up", "starts"),
        ("pods", "", note),
        ("job", "", "x"),
    ):
        steps[name] = Step(name, (), ready=False, condition=condition, note=said)
    for names, message in (
        (("secret", "database", "pods", "job"), f"waiting for secret, database, pods, job: {note}"),
        (("pods",), f"waiting for pods: {note}"),
        (("secret", "database"), "waiting for secret, database"),
    ):
        plan = Plan([steps[name] for name in names], Status())
        assert ready(status_of(plan, (), {}, generation=1, now=NOW)) == (
            "False",
            "Progressing",
            message,
        )


def test_degraded_stays_degraded_until_ready() -> None:
    """A second reconcile of a degraded object does not treat it as a new one."""
    broken = written(ready=False, stored=written())
    assert ready(written(ready=False, stored=broken))[1] == "Degraded"


@pytest.mark.parametrize(
    ("error", "phase", "reason"),
    [
        (ServerError(500, "InternalError", "etcd is away"), "Running", "InternalError"),
        (Invalid(422, "Invalid", "etcd is away"), "Failed", "Invalid"),
        (ApiError(418, "", "etcd is away"), "Running", "ReconcileFailed"),
    ],
)
def test_a_failure_begins_with_the_description_of_the_step(
    error: ApiError, phase: str, reason: str
) -> None:
    """The message begins with the step's description; only a permanent error sets the phase Failed."""
    status = written(Failure(STEP, error))
    assert ready(status) == ("False", reason, "failed to create database: etcd is away")
    assert status["phase"] == phase


def test_a_problem_of_the_plan_is_permanent() -> None:
    """The condition has the reason and message of the planner's problem."""
    status = written(problem=Problem("spec.image is missing"))
    assert ready(status) == ("False", "Incomplete", "spec.image is missing")
    assert status["phase"] == "Failed"


def test_an_unreadable_object_keeps_what_was_observed() -> None:
    """Without a plan, only Ready, the phase and the generation change."""
    stored = {**written(), "replicas": 3}
    status = status_of_unplanned(
        Problem("spec.port: bad"), stored, shows_phase=False, generation=2, now=LATER
    )
    assert (status["replicas"], status["phase"], status["observedGeneration"]) == (3, "Failed", 2)
    assert ready(status) == ("False", "Incomplete", "spec.port: bad")


def faults() -> ValidationError:
    """Pydantic's message quotes the value below the first line."""
    with pytest.raises(ValidationError) as raised:
        TypeAdapter(int).validate_python("hunter2")
    assert "hunter2" in str(raised.value)
    return raised.value


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ZeroDivisionError("division by zero"), "ZeroDivisionError: division by zero"),
        (KeyError("teeth"), "KeyError: 'teeth'"),
        (AssertionError(), "AssertionError"),
        (ValueError(f"no {'x' * 300}"), f"ValueError: no {'x' * 197}…"),
        (
            KeyError(test_a_problem_of_the_plan_is_permanent),
            "KeyError: <function test_a_problem_of_the_plan_is_permanent>",
        ),
        (faults(), "ValidationError: 1 validation error for int"),
    ],
)
def test_an_internal_error_has_its_type_and_the_first_line_of_its_text(
    error: Exception, said: str
) -> None:
    """The message is short, the same at each retry, and does not contain quoted parts of the object."""
    hint = (
        "internal error; the controller log has the traceback; retried at most every five minutes"
    )
    assert unplannable("Gear", error) == (f"failed to plan Gear: {said}; {hint}", "PlanFailed")


HOLDS, WAITS = (
    Step("cache", [], condition="CacheReady"),
    Step("cache", [], ready=False, condition="CacheReady"),
)
NOT_PULLED = Problem("no such image", "ImagePull")


@pytest.mark.parametrize(
    ("step", "failure", "before", "said"),
    [
        (HOLDS, None, [], ("True", "Ready", "")),
        (
            replace(HOLDS, note="scraped by annotation"),
            None,
            [],
            ("True", "Ready", "scraped by annotation"),
        ),
        (WAITS, None, [], ("False", "Progressing", "waiting for cache")),
        (replace(WAITS, note="0 of 1 ready"), None, [], ("False", "Progressing", "0 of 1 ready")),
        (WAITS, None, [("True", "Ready")], ("False", "Degraded", "waiting for cache")),
        (WAITS, None, [("False", "Updating")], ("False", "Updating", "waiting for cache")),
        (
            replace(WAITS, note=NOT_PULLED),
            None,
            [],
            ("False", "ImagePull", "failed to create cache: no such image"),
        ),
        (
            HOLDS,
            ServerError(500, "Down", "down"),
            [],
            ("False", "Down", "failed to create cache: down"),
        ),
    ],
)
def test_a_step_has_a_condition_of_its_own(
    step: Step, failure: ApiError | None, before: list[tuple[str, str]], said: tuple[str, str, str]
) -> None:
    """Errors come first, then faults of existing children, then progress."""
    old = [{"type": "CacheReady", "status": status, "reason": reason} for status, reason in before]
    failures = [Failure(step, failure)] if failure else []
    stored = {"observedGeneration": 1, "conditions": old}
    status = status_of(Plan((step,), Status()), failures, stored, generation=1, now=NOW)
    mine = status["conditions"][0]
    assert (mine["type"], mine["status"], mine["reason"], mine["message"]) == ("CacheReady", *said)


def test_a_step_waits_for_the_failed_step_that_it_depends_on() -> None:
    """Also where the objects of that step are ready, such as those of another owner."""
    waiting = Step("backend", [], depends_on=("cache",), ready=False, condition="BackendReady")
    failures = [Failure(HOLDS, Forbidden(403, "Denied", "denied"))]
    status = status_of(Plan((HOLDS, waiting), Status()), failures, {}, generation=1, now=NOW)
    assert status["conditions"][1]["message"] == "waiting for cache"


@pytest.mark.parametrize(
    ("error", "failing", "phase"),
    [
        (ServerError(500, "Down", "down"), "Degraded", "Degraded"),
        (ServerError(500, "Down", "down"), "", "Running"),
        (Invalid(422, "Invalid", "no"), "Degraded", "Failed"),
    ],
)
def test_a_kind_may_have_a_phase_of_its_own_while_a_step_fails(
    error: ApiError, failing: str, phase: str
) -> None:
    """The phase stays while existing children work; a permanent error is Failed for every kind."""
    plan = Plan((HOLDS,), Status(), failing=failing)
    assert status_of(plan, [Failure(HOLDS, error)], {}, generation=1, now=NOW)["phase"] == phase


def test_ready_reports_a_failed_step_before_a_waiting_one() -> None:
    """The first faulty step determines Ready."""
    plan = Plan((replace(WAITS, name="database"), replace(WAITS, note=NOT_PULLED)), Status())
    status = status_of(plan, [], {}, generation=1, now=NOW)
    assert ready(status) == ("False", "ImagePull", "failed to create cache: no such image")


APPROVED = {"type": "Approved", "status": "True", "reason": "Looked", "message": ""}


@pytest.mark.parametrize(
    ("more", "first", "said"),
    [
        ({}, [], True),
        ({}, [APPROVED], True),
        ({}, [APPROVED | {"observedGeneration": 6}], True),
        ({}, [APPROVED | {"observedGeneration": 7}], False),
        ({}, [{"type": "Ready", "status": "True"}], False),
        ({"note": "theirs"}, [], False),
        ({"phase": "Failed"}, [], False),
    ],
)
def test_conditions_of_other_writers_are_kept(
    more: dict[str, Any], first: list[dict[str, Any]], said: bool
) -> None:
    """Only conditions of another generation are known to be of other writers."""
    status = written(generation=7)
    assert (
        is_same({**status, **more, "conditions": [*first, *status["conditions"]]}, status) is said
    )


def test_a_status_that_must_be_written() -> None:
    """The status is missing, of an earlier generation, or lacks conditions."""
    status = written(generation=7)
    assert not is_same({}, status)
    assert not is_same({"conditions": None}, status)
    assert not is_same(written(generation=6), status)
    assert not is_same({**status, "conditions": [APPROVED]}, status)
