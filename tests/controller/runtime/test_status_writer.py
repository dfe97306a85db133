"""Statuses that somebody overwrites, and that an older CRD does not declare."""

import pytest

from controller.runtime import conflict_backoff
from controller.runtime.events import EVENT
from kube.resource import JsonObject
from tests.controller.runtime.conftest import NAMESPACE, Running, Things
from tests.controller.runtime.test_reconciler import single


def overwrite(things: Things, status: JsonObject) -> None:
    """Change the status of the Thing as another user."""
    things.server.change(things.resource, "thing", {"status": status}, NAMESPACE, "status")


async def test_an_overwritten_status_is_written_again(running: Running) -> None:
    """A status without conditions, and with another phase, is restored at once."""
    async with running(single) as things:
        things.create()
        await things.until_ready()
        overwrite(things, {"phase": "Failed", "conditions": []})
        await things.until_ready()
        thing = await things.until(things.resource, "thing")
    assert thing["status"]["phase"] == "Running"


async def test_a_status_that_a_restarted_process_has_only_read_is_restored(
    running: Running,
) -> None:
    """It need not have been written by this process."""
    async with running(single) as things:
        things.create()
        await things.until_ready()
    async with running(single) as things:
        await things.until_quiet()
        overwrite(things, {"phase": "Failed"})
        await things.until(
            things.resource, "thing", lambda each: each["status"]["phase"] == "Running"
        )


async def test_conditions_of_others_cost_nothing(running: Running) -> None:
    """A condition that somebody adds is kept, and causes no write."""
    async with running(single) as things:
        things.create()
        await things.until_ready()
        thing = await things.until(things.resource, "thing")
        added = {"type": "Reviewed", "status": "True", "reason": "ByHand", "message": ""}
        things.server.requests.clear()
        overwrite(things, {"conditions": [*thing["status"]["conditions"], added]})
        await things.until_quiet()
        written = [each for each in things.writes() if "marker" not in each]
        thing = await things.until(things.resource, "thing")
    assert written == []
    assert [each["type"] for each in thing["status"]["conditions"]] == ["Ready", "Reviewed"]


async def test_own_statuses_enqueue_nothing(running: Running) -> None:
    """The watch event of the controller's own write is no reason to reconcile again."""
    async with running(single) as things:
        things.create()
        await things.until_ready()
        await things.until_quiet()
        adds = things.manager.metrics.adds.labels("thing")
        before = adds._value.get()
        things.create("other")
        await things.until_ready(name="other")
        await things.until_quiet()
        # two objects, each by its creation, its child, and the caches that show its own writes
        assert adds._value.get() - before == 6


async def test_a_fight_over_a_status_is_slowed_down(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After five repairs in ten minutes an event names the other writer, and the pauses grow."""
    monkeypatch.setattr(conflict_backoff, "REPAIR_INTERVAL", 3600.0)
    async with running(single) as things:
        things.create()
        await things.until_ready()
        for _ in range(5):
            overwrite(things, {"phase": "Failed"})
            await things.until(
                things.resource, "thing", lambda each: each["status"]["phase"] == "Running"
            )
        event = await things.until_told("Contested")
        overwrite(things, {"phase": "Failed"})
        await things.until_quiet()
        thing = await things.until(things.resource, "thing")
    assert event["note"].startswith("status.phase is changed again and again by ")
    assert thing["status"]["phase"] == "Failed"
    assert len([each for each in things.server.list(EVENT) if each["reason"] == "Contested"]) == 1
