"""The number of writes: one for each child and status, none without a change, few when every write fails."""

import logging
from collections import Counter
from datetime import datetime
from itertools import count

import pytest
from prometheus_client import CollectorRegistry

import controller.runtime.workqueue
from controller.runtime.controller import Controller
from controller.runtime.metrics import ControllerMetrics
from controller.runtime.plan import Observed, Plan, Step
from controller.runtime.types import ReconcileRequest, Result
from controller.runtime.workqueue import LOW
from kube.resource import JsonObject
from tests.controller.runtime.conftest import (
    CONFIGMAP,
    NAMESPACE,
    Planner,
    Running,
    Status,
    Thing,
    Things,
)
from tests.controller.runtime.test_reconciler import single

MANY = 100


def versions(things: Things) -> dict[str, str]:
    """The resource version of everything."""
    everything = [*things.server.list(things.resource), *things.server.list(CONFIGMAP)]
    return {
        f"{object['kind']} {object['metadata']['name']}": object["metadata"]["resourceVersion"]
        for object in everything
    }


def say(things: Things, *conditions: JsonObject, name: str = "thing") -> None:
    """Let another writer apply conditions of a Thing's status, and remove its previous ones."""
    named = {"name": name, "namespace": NAMESPACE}
    things.server.apply(
        things.resource,
        {"metadata": named, "status": {"conditions": [*conditions]}},
        "them",
        "status",
    )


def requests_for(name: str, things: Things) -> list[str]:
    """Return the requests about one Thing and its children."""
    return [
        f"{logged_request.method} {logged_request.path.partition(f'/{NAMESPACE}/')[2]}"
        for logged_request in things.server.requests.log
        if name in logged_request.path.split("/")
    ]


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
            things.manager.controllers[0].add(
                ReconcileRequest(NAMESPACE, f"thing-{number}"), priority=LOW
            )
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


async def test_conditions_of_other_writers_cause_no_request(running: Running) -> None:
    """Conditions of other writers stay; neither a reconcile nor a restart sends a request."""
    async with running(single) as things:
        things.create()
        await things.until_ready()
        theirs = [
            {"type": "Approved", "status": "True"},
            {"type": "Old", "status": "True", "observedGeneration": 0},
        ]
        say(things, *theirs)
        await things.until_quiet()
        before = versions(things)
        things.server.requests.clear()
        things.manager.controllers[0].add(things.request(), priority=LOW)
        await things.until_quiet()
        passed = requests_for("thing", things)
        assert versions(things).items() >= before.items()
    things.server.requests.clear()
    async with running(single) as things:
        await things.until_quiet()
        restarted = requests_for("thing", things)
        assert versions(things).items() >= before.items()
        say(things, theirs[0] | {"status": "False"})
        things.server.change(
            CONFIGMAP, "thing", {"metadata": {"labels": {"some": "body"}}}, NAMESPACE
        )
        await things.until_quiet()
        changed = requests_for("thing", things)
        thing = await things.until(things.resource, "thing")
    assert (passed, restarted, changed) == ([], [], [])
    assert {each["type"]: each["status"] for each in thing["status"]["conditions"]} == {
        "Ready": "True",
        "Approved": "False",
    }


@pytest.mark.parametrize(
    ("conditions", "fields"), [(["Kept"], ["kept", "dropped"]), (["Kept", "Dropped"], ["kept"])]
)
async def test_conditions_that_a_new_release_no_longer_writes_are_removed(
    running: Running, conditions: list[str], fields: list[str]
) -> None:
    """Each object gets one write, whatever others write there; the next start sends none."""

    def release(conditions: list[str], fields: list[str]) -> Planner:
        def plan(thing: Thing, observed: Observed, now: datetime) -> Plan:
            del thing, observed, now
            steps = [Step(each.lower(), (), condition=each) for each in conditions]
            return Plan(steps, Status(dict.fromkeys(fields, 1)))

        return plan

    async with running(release(["Kept", "Dropped"], ["kept", "dropped"])) as things:
        for name in ("one", "two"):
            things.create(name)
            await things.until_ready(name=name)
        say(things, {"type": "Approved", "status": "True"}, name="one")
        await things.until_quiet()
    written, left = [], {}
    for _ in range(2):
        things.server.requests.clear()
        async with running(release(conditions, fields)) as things:
            await things.until_quiet()
            written.append(sorted(requests_for("one", things) + requests_for("two", things)))
            left = {name: await things.until(things.resource, name) for name in ("one", "two")}
    assert written == [["PATCH things/one/status", "PATCH things/two/status"], []]
    assert {
        name: {each["type"] for each in left[name]["status"]["conditions"]} for name in left
    } == {
        "one": {*conditions, "Ready", "Approved"},
        "two": {*conditions, "Ready"},
    }
    assert {field for each in left.values() for field in each["status"]} == {
        *fields,
        "conditions",
        "observedGeneration",
    }


async def test_a_start_applies_once_to_find_out_who_owns_a_field(running: Running) -> None:
    """A condition of the current generation, or a field, causes one apply without effect, which is not repeated."""
    async with running(single) as things:
        things.create("one")
        things.create("two")
        await things.until_ready(name="one")
        await things.until_ready(name="two")
        say(things, {"type": "Approved", "status": "True", "observedGeneration": 1}, name="one")
        things.server.change(
            things.resource, "two", {"status": {"note": "theirs"}}, NAMESPACE, "status"
        )
        await things.until_quiet()
        before = versions(things)
    things.server.requests.clear()
    async with running(single) as things:
        await things.until_quiet()
        for name in ("one", "two"):
            things.manager.controllers[0].add(things.request(name), priority=LOW)
        await things.until_quiet()
        assert sorted(requests_for("one", things) + requests_for("two", things)) == [
            "PATCH things/one/status",
            "PATCH things/two/status",
        ]
        assert versions(things).items() >= before.items()


async def test_a_status_that_is_never_the_same_is_no_loop(running: Running) -> None:
    """The status is written once for each change of other fields: the own status write enqueues nothing."""
    numbers = count()

    def plan(thing: Thing, observed: Observed, now: datetime) -> Plan:
        del thing, observed, now
        return Plan((), Status({"number": next(numbers)}))

    async with running(plan) as things:
        things.create()
        await things.until_ready()
        for size in range(2, 7):
            things.server.change(things.resource, "thing", {"spec": {"size": size}}, NAMESPACE)
            await things.until_quiet()
        written = things.writes()
    assert written.count("PATCH things/thing/status") == 6


async def test_defaults_of_the_server_cause_no_loop(running: Running) -> None:
    """A default that the plan does not set costs no more than one write of the child."""
    async with running(single) as things:
        things.server.mutate(lambda each: each | {"immutable": False} if "data" in each else each)
        things.create()
        await things.until_ready()
        things.server.change(
            CONFIGMAP, "thing", {"metadata": {"labels": {"some": "body"}}}, NAMESPACE
        )
        await things.until_quiet()
        child = await things.until(CONFIGMAP, "thing")
        written = things.writes()
    assert child["immutable"] is False
    assert written.count("PATCH configmaps/thing") == 1


async def test_a_failing_reconcile_is_retried_with_growing_delays(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The waits of a reconcile that always raises double from attempt to attempt (here: milliseconds for seconds)."""
    monkeypatch.setattr(controller.runtime.workqueue, "FIRST_DELAY", 0.001)
    monkeypatch.setattr(controller.runtime.workqueue, "MAX_DELAY", 0.05)
    monkeypatch.setattr(controller.runtime.workqueue, "MAX_JITTER", 0.0)
    caplog.set_level(logging.WARNING, "gatewright.controller")
    attempts = count(1)

    async def reconcile(request: ReconcileRequest) -> Result:
        if next(attempts) == 9:
            failing.stop()
        raise ValueError("always")

    failing = Controller(
        "failing", reconcile=reconcile, metrics=ControllerMetrics(CollectorRegistry())
    )
    failing.add(ReconcileRequest(NAMESPACE, "thing"))
    await failing.run()
    waits = [vars(record)["fields"]["retry_seconds"] for record in caplog.records]
    assert waits == [0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.05, 0.05, 0.05]
