"""How often we write: once for each child and status, not at all when nothing changed, seldom when all fails."""

import logging
from collections import Counter
from datetime import datetime
from itertools import count

import pytest
from prometheus_client import CollectorRegistry

import controller.runtime.backoff
from controller.runtime.controller import Controller
from controller.runtime.metrics import Metrics
from controller.runtime.plan import Plan, Seen
from controller.runtime.queue import LOW
from controller.runtime.result import Request, Result
from tests.controller.runtime.conftest import CONFIGMAP, NAMESPACE, Running, Status, Thing, Things
from tests.controller.runtime.test_planned import single

MANY = 300


def versions(things: Things) -> dict[str, str]:
    """The resource version of everything."""
    everything = [*things.server.list(things.resource), *things.server.list(CONFIGMAP)]
    return {f"{each['kind']} {each['metadata']['name']}": each["metadata"]["resourceVersion"] for each in everything}


async def test_objects_cost_their_writes_once_and_then_nothing(running: Running) -> None:
    """Cold: each child and each status once. A full pass and a restart: no request, and no version changes."""
    async with running(single) as things:
        for number in range(MANY):
            things.create(f"thing-{number}")
        for number in range(MANY):
            await things.until_ready(name=f"thing-{number}")
        cold = Counter(things.writes())
        await things.until_quiet()
        before = versions(things)
        things.server.requests.clear()
        for number in range(MANY):  # what the periodic pass does
            things.runtime.controllers[0].add(Request(NAMESPACE, f"thing-{number}"), priority=LOW)
        await things.until_quiet()
        passed = [each for each in things.server.requests.log if "thing-" in each.path]
        assert versions(things).items() >= before.items()
    things.server.requests.clear()
    async with running(single) as things:
        await things.until_quiet()
        restarted = [each for each in things.server.requests.log if "thing-" in each.path]
        assert versions(things).items() >= before.items()
    assert len(cold) == 2 * MANY
    assert set(cold.values()) == {1}
    assert (passed, restarted) == ([], [])


async def test_a_status_that_is_never_the_same_is_no_loop(running: Running) -> None:
    """It is written once for each change of something else: our own status wakes nobody."""
    numbers = count()

    def plan(thing: Thing, seen: Seen, now: datetime) -> Plan:
        del thing, seen, now
        return Plan((), Status({"number": next(numbers)}))

    async with running(plan) as things:
        things.create()
        await things.until_ready()
        for size in range(2, 7):
            things.server.change(things.resource, "thing", {"spec": {"size": size}}, NAMESPACE)
            await things.until_quiet()
        written = things.writes()
    assert written.count("PATCH things/thing/status") == 6


async def test_what_the_server_fills_in_is_no_loop(running: Running) -> None:
    """A default that we did not ask for costs one write of the child, as everything does."""
    async with running(single) as things:
        things.server.mutate(lambda each: each | {"immutable": False} if "data" in each else each)
        things.create()
        await things.until_ready()
        things.server.change(CONFIGMAP, "thing", {"metadata": {"labels": {"some": "body"}}}, NAMESPACE)
        await things.until_quiet()
        child = await things.until(CONFIGMAP, "thing")
        written = things.writes()
    assert child["immutable"] is False
    assert written.count("PATCH configmaps/thing") == 1


async def test_what_always_fails_is_tried_ever_more_seldom(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The waits of a reconcile that always raises double from attempt to attempt (here: milliseconds for seconds)."""
    monkeypatch.setattr(controller.runtime.backoff, "FIRST", 0.001)
    monkeypatch.setattr(controller.runtime.backoff, "LONGEST", 0.05)
    caplog.set_level(logging.WARNING, "gatewright.controller")
    attempts = count(1)

    async def reconcile(request: Request) -> Result:
        if next(attempts) == 9:
            failing.stop()
        raise ValueError("always")

    failing = Controller(
        "failing", reconcile=reconcile, metrics=Metrics(CollectorRegistry()), uniform=lambda low, high: low
    )
    failing.add(Request(NAMESPACE, "thing"))
    await failing.run()
    waits = [record.fields["retry_seconds"] for record in caplog.records]
    assert waits == [0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.05, 0.05, 0.05]
