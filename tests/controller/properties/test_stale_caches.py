"""Caches may lag behind our own writes: nothing is made twice, and no status takes back what it said."""

import random
from collections import Counter, defaultdict
from datetime import datetime

import pytest

from controller.runtime.own_writes import OwnWrites
from controller.runtime.plan import Apply, Once, Plan, Random, Seen, Step
from tests.controller.runtime.conftest import CONFIGMAP, SECRET, Object, Running, Status, Thing, Things, configmap
from tests.fakes.apiserver.storage import Event

NAMES = [f"thing-{number}" for number in range(20)]


def plan(thing: Thing, seen: Seen, now: datetime) -> Plan:
    """A password that is made once, then a ConfigMap; the phase says how far it is."""
    del now
    name = str(thing.metadata["name"])
    secret: Object = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}}
    made = [seen.child(resource, name) is not None for resource in (SECRET, CONFIGMAP)]
    steps = (
        Step("secret", [Once(secret, {"data.password": Random()})], holds=made[0]),
        Step("config", [Apply(configmap(name, size=str(thing.spec.size)))], needs=("secret",), holds=made[1]),
    )
    return Plan(steps, Status({"made": sum(made)}))


class History:
    """What each Thing's status said, one after the other."""

    def __init__(self, things: Things) -> None:
        self.said: dict[str, list[tuple[int, str]]] = defaultdict(list)
        things.server.storage.listeners.append(self.note)

    def note(self, event: Event) -> None:
        """Note a new status."""
        status = (event.new or {}).get("status")
        if event.new and event.new["kind"] == "Thing" and status:
            says = (status["made"], next(each["status"] for each in status["conditions"] if each["type"] == "Ready"))
            if self.said[event.new["metadata"]["name"]][-1:] != [says]:
                self.said[event.new["metadata"]["name"]].append(says)


@pytest.mark.parametrize("patience", [5.0, 0.02])
async def test_caches_that_lag_make_nothing_twice(
    running: Running, monkeypatch: pytest.MonkeyPatch, patience: float
) -> None:
    """Each object is created once, whether the caches are waited for or, when patience is out, the server is asked."""
    assert OwnWrites.__init__.__kwdefaults__ is not None
    monkeypatch.setitem(OwnWrites.__init__.__kwdefaults__, "patience", patience)
    chance = random.Random(6)
    async with running(plan) as things:
        history = History(things)
        things.server.watches.delay = lambda: chance.uniform(0.0, 0.05)
        for name in NAMES:
            things.create(name)
        for name in NAMES:
            await things.until_ready(name=name)
            things.runtime.controllers[0].add(things.request(name))
        await things.until_quiet()
        requests = things.server.requests.log
        written = Counter(each for each in things.writes() if "marker" not in each)
        asked = [each for each in requests if each.method == "GET" and "thing-" in each.path]
    created = Counter({each: count for each, count in written.items() if "status" not in each})
    assert created == Counter({f"PATCH configmaps/{name}": 1 for name in NAMES} | {"POST secrets": len(NAMES) + 1})
    assert {name: history.said[name] for name in NAMES} == {name: [(2, "True")] for name in NAMES}
    assert {count for each, count in written.items() if each.endswith("/status")} == {1}
    if patience == 5.0:
        assert len(asked) == len(NAMES)  # whether the name is free, before each ConfigMap
