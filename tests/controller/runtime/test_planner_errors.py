"""A plan function that raises: the status reports it once, and the reconcile is retried."""

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime

import pytest

from controller.runtime.plan import Apply, Observed, Plan, Step
from kube.resource import JsonObject
from tests.controller.runtime.conftest import (
    CONFIGMAP,
    NAMESPACE,
    PhasedThing,
    Running,
    Status,
    Thing,
    Things,
    configmap,
)
from tests.controller.runtime.test_reconciler import name, single

HINT = "internal error; the controller log has the traceback; retried at most every five minutes"
SAID = f"failed to plan Thing: ZeroDivisionError: no size; {HINT}"

pytestmark = pytest.mark.usefixtures("hasty")


class Flawed:
    """A planner that raises an error while `flaw` is set, and counts the errors."""

    def __init__(
        self,
        plan: Callable[[Thing, Observed, datetime], Plan] = single,
        flaw: Callable[[Thing, Observed], bool] | None = None,
    ) -> None:
        self.raised = 0
        self.is_mended = False
        self._plan = plan
        self._flaw = flaw or (lambda thing, observed: thing.spec.size == 0)
        self._again = asyncio.Event()

    def __call__(self, thing: Thing, observed: Observed, now: datetime) -> Plan:
        """Plan, or raise."""
        if not self.is_mended and self._flaw(thing, observed):
            self.raised += 1
            self._again.set()
            raise ZeroDivisionError("no size")
        return self._plan(thing, observed, now)

    async def until_raised(self, more: int) -> None:
        """Wait until it has raised this many more times."""
        wanted = self.raised + more
        while self.raised < wanted:
            self._again.clear()
            await self._again.wait()


def resize(things: Things, size: int) -> None:
    """Set another size in the spec."""
    things.server.change(things.resource, "thing", {"spec": {"size": size}}, NAMESPACE)


def panics(things: Things) -> float | None:
    """How many reconciles met a mistake."""
    counted = "controller_runtime_reconcile_panics_total"
    return things.manager.metrics.registry.get_sample_value(counted, {"controller": "thing"})


async def test_a_planner_error_is_reported_until_it_is_fixed(
    running: Running, caplog: pytest.LogCaptureFixture
) -> None:
    """Retries write one status, with the current generation; after the fix no trace is left."""
    caplog.set_level(logging.WARNING, "gatewright.controller")
    plan = Flawed()
    async with running(plan) as things:
        things.create()
        ready = await things.until_ready()
        resize(things, 0)
        failed = await things.until_ready("False", "PlanFailed")
        await plan.until_raised(4)
        thing = await things.until(things.resource, "thing")
        child = await things.until(CONFIGMAP, "thing")
        while_failed = things.writes()
        plan.is_mended = True
        await things.until_ready()
        mended = await things.until(things.resource, "thing")
        await things.until_quiet()
        written = [each for each in things.writes() if "marker" not in each]
    made = ["PATCH configmaps/thing", "PATCH things/thing/status"]
    assert (while_failed, written) == (
        [*made, "PATCH things/thing/status"],
        [*made, "PATCH things/thing/status", *made],
    )
    assert child["data"] == {"size": "1"}
    assert thing["status"] == {"phase": "Failed", "observedGeneration": 2, "conditions": [failed]}
    assert failed == {
        "type": "Ready",
        "status": "False",
        "reason": "PlanFailed",
        "message": SAID,
        "observedGeneration": 2,
        "lastTransitionTime": failed["lastTransitionTime"],
    }
    assert mended["status"] == {
        "phase": "Running",
        "observedGeneration": 2,
        "conditions": [
            ready
            | {
                "observedGeneration": 2,
                "lastTransitionTime": mended["status"]["conditions"][0]["lastTransitionTime"],
            }
        ],
    }
    assert panics(things) == plan.raised == len(caplog.records)
    for record in caplog.records:
        assert record.getMessage() == "Retryable error occurred, requeuing"
        assert record.exc_info
        assert isinstance(record.exc_info[1], ZeroDivisionError)


@pytest.mark.parametrize(("type", "phase"), [(Thing, {}), (PhasedThing, {"phase": "Failed"})])
async def test_an_object_that_was_never_planned_has_the_error_too(
    running: Running, type: type[Thing], phase: JsonObject
) -> None:
    """It has a phase if its kind has one, and no other condition."""
    async with running(Flawed(), type=type) as things:
        things.create(size=0)
        failed = await things.until_ready("False", "PlanFailed")
        thing = await things.until(things.resource, "thing")
        written = things.writes()
    assert failed["message"] == SAID
    assert thing["status"] == {**phase, "observedGeneration": 1, "conditions": [failed]}
    assert written == ["PATCH things/thing/status"]


async def test_what_was_made_before_the_mistake_stays(running: Running) -> None:
    """Planning with the server's responses raises an error: the child exists, and is not created again."""
    plan = Flawed(flaw=lambda thing, observed: observed.child(CONFIGMAP, name(thing)) is not None)
    async with running(plan) as things:
        things.create()
        await things.until_ready("False", "PlanFailed")
        await plan.until_raised(3)
        assert things.writes() == ["PATCH configmaps/thing", "PATCH things/thing/status"]
        plan.is_mended = True
        await things.until_ready()
        written = things.writes()
    assert written == [
        "PATCH configmaps/thing",
        "PATCH things/thing/status",
        "PATCH things/thing/status",
    ]


async def test_a_plan_that_cannot_be_carried_out_is_a_mistake_too(running: Running) -> None:
    """A child that its kind does not declare is never written."""

    def plan(thing: Thing, observed: Observed, now: datetime) -> Plan:
        del thing, observed, now
        return Plan((Step("config", [Apply(configmap("thing"))]),), Status())

    async with running(plan, owns=()) as things:
        things.create()
        failed = await things.until_ready("False", "PlanFailed")
        written = things.writes()
    undeclared = "ValueError: Thing does not declare that it owns v1 ConfigMap"
    assert failed["message"] == f"failed to plan Thing: {undeclared}; {HINT}"
    assert written == ["PATCH things/thing/status"]


async def test_a_status_that_cannot_be_written_hides_nothing(
    running: Running, caplog: pytest.LogCaptureFixture
) -> None:
    """The log has the exception and why the status does not have it; the status has it as soon as it can be written."""
    caplog.set_level(logging.WARNING, "gatewright.controller")
    plan = Flawed()
    async with running(plan) as things:
        things.server.fail(2, 500, method="PATCH", path="/things/thing/status")
        things.create(size=0)
        failed = await things.until_ready("False", "PlanFailed")
        written = things.writes()
    bug, unwritten = (
        ("Retryable error occurred, requeuing", "no size"),
        "500 InternalError: a fault of the test: 500",
    )
    logged = [
        (record.getMessage(), str(record.exc_info[1]))
        for record in caplog.records
        if record.exc_info
    ]
    assert logged[:5] == [("The status could not be written", unwritten), bug] * 2 + [bug]
    assert failed["message"] == SAID
    assert written == ["PATCH things/thing/status"] * 3


async def test_a_failed_clean_up_is_reported(running: Running) -> None:
    """A condition and a Warning event give the reason; after the fix, the object is deleted."""

    def done(thing: Thing, observed: Observed, now: datetime) -> Plan:
        del observed, now
        return Plan((), Status(), finalized="deletionTimestamp" in thing.metadata)

    plan = Flawed(done, flaw=lambda thing, observed: "deletionTimestamp" in thing.metadata)
    async with running(plan, finalizer="test.example/finalizer") as things:
        things.create()
        await things.until_ready()
        things.server.delete(things.resource, "thing", NAMESPACE)
        failed = await things.until_ready("False", "PlanFailed")
        event = await things.until_told("CleanUpFailed")
        plan.is_mended = True
        await things.until_gone(things.resource, "thing")
    assert (event["type"], event["note"]) == ("Warning", failed["message"])
