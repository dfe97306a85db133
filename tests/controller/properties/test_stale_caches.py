"""Caches that lag behind the controller's own writes: nothing is created twice, and no status reverts."""

import asyncio
import random
from collections import Counter, defaultdict
from datetime import datetime

import pytest

from controller.runtime import expectations
from controller.runtime.controller import Controller
from controller.runtime.plan import Apply, CreateOnly, Observed, Plan, Random, Step
from controller.runtime.types import ReconcileRequest, Result
from gatewright.testing.fake_apiserver.storage import StorageEvent
from kube.resource import JsonObject
from tests.controller.runtime.conftest import (
    CONFIGMAP,
    NAMESPACE,
    SECRET,
    Running,
    Status,
    Thing,
    Things,
    configmap,
)
from tests.waiting import WITHIN

pytestmark = pytest.mark.long

NAMES = [f"thing-{number}" for number in range(20)]


def plan(thing: Thing, observed: Observed, now: datetime) -> Plan:
    """Plan a Secret that is created once, then a ConfigMap; the phase shows the progress."""
    del now
    name = str(thing.metadata["name"])
    secret: JsonObject = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}}
    made = [observed.child(resource, name) is not None for resource in (SECRET, CONFIGMAP)]
    steps = (
        Step("secret", [CreateOnly(secret, {"data.password": Random()})], ready=made[0]),
        Step(
            "config",
            [Apply(configmap(name, size=str(thing.spec.size)))],
            depends_on=("secret",),
            ready=made[1],
        ),
    )
    return Plan(steps, Status({"made": sum(made)}))


class History:
    """The statuses of each Thing, in order."""

    def __init__(self, things: Things) -> None:
        self.said: dict[str, list[tuple[int, str]]] = defaultdict(list)
        things.server.storage.listeners.append(self.note)

    def note(self, event: StorageEvent) -> None:
        """Note a new status."""
        status = (event.new or {}).get("status")
        if event.new and event.new["kind"] == "Thing" and status:
            says = (
                status["made"],
                next(each["status"] for each in status["conditions"] if each["type"] == "Ready"),
            )
            if self.said[event.new["metadata"]["name"]][-1:] != [says]:
                self.said[event.new["metadata"]["name"]].append(says)


class Looks:
    """How often each Thing was reconciled."""

    def __init__(self, controller: Controller) -> None:
        self._count = Counter[str]()
        self._twice = asyncio.Event()
        self._reconcile = controller.reconcile
        controller.reconcile = self.reconcile

    async def reconcile(self, request: ReconcileRequest) -> Result:
        """Count a reconcile that has ended."""
        result = await self._reconcile(request)
        self._count[request.name] += 1
        if all(self._count[name] >= 2 for name in NAMES):
            self._twice.set()
        return result

    async def until_twice(self) -> None:
        """Wait until each was looked at twice."""
        await asyncio.wait_for(self._twice.wait(), WITHIN)


@pytest.mark.parametrize("patience", [60.0, 0.02])
async def test_caches_that_lag_make_nothing_twice(
    running: Running, monkeypatch: pytest.MonkeyPatch, patience: float
) -> None:
    """Each object is created once, whether the reconcile waits for the caches or finally reads from the server.

    A waiting reconcile begins as soon as the caches are current, long before a limit of one minute.
    """
    monkeypatch.setattr(expectations, "PATIENCE", patience)
    chance = random.Random(6)
    async with running(plan) as things:
        history, looks = History(things), Looks(things.manager.controllers[0])
        things.server.watches.delay = lambda: chance.uniform(0.0, 0.05)
        for name in NAMES:
            things.create(name)
        for name in NAMES:
            await things.until_ready(name=name)
            things.manager.controllers[0].add(things.request(name))
        await things.until_quiet()
        await looks.until_twice()
        requests = things.server.requests.log
        written = Counter(each for each in things.writes() if "marker" not in each)
        asked = [each for each in requests if each.method == "GET" and "thing-" in each.path]
    created = Counter({each: count for each, count in written.items() if "status" not in each})
    assert created == Counter(
        {f"PATCH configmaps/{name}": 1 for name in NAMES} | {"POST secrets": len(NAMES) + 1}
    )
    assert {name: history.said[name] for name in NAMES} == {name: [(2, "True")] for name in NAMES}
    assert {count for each, count in written.items() if each.endswith("/status")} == {1}
    if patience == 60.0:
        assert not asked  # an apply that can only create finds out whether a name is free


def told_of(thing: Thing, observed: Observed, now: datetime) -> Plan:
    """Plan a ConfigMap; the status has the value that another writer wrote into it."""
    del now
    name = str(thing.metadata["name"])
    theirs = (observed.child(CONFIGMAP, name) or {}).get("data", {}).get("theirs")
    return Plan(
        (Step("config", [Apply(configmap(name, size=str(thing.spec.size)))]),),
        Status({"theirs": theirs}),
    )


async def test_an_unobserved_change_of_the_spec_is_not_mistaken_for_a_status_write(
    running: Running,
) -> None:
    """A relist may show a version that the controller wrote together with a spec that it never observed."""
    async with running(told_of) as things:
        things.create()
        await things.until_ready()
        await things.until_quiet()
        for watcher in things.server.watches.open:
            watcher.silent = watcher.kind.resource.plural == things.resource.plural
        things.server.change(things.resource, "thing", {"spec": {"size": 2}}, NAMESPACE)
        things.server.change(CONFIGMAP, "thing", {"data": {"theirs": "x"}}, NAMESPACE)
        await things.until(
            things.resource, "thing", lambda each: bool(each["status"]["theirs"] == "x")
        )
        things.server.expire_watches()
        child = await things.until(
            CONFIGMAP, "thing", lambda each: bool(each["data"]["size"] == "2")
        )
    assert child["data"] == {"size": "2", "theirs": "x"}
