"""Users, autoscalers and other controllers edit the controller's objects concurrently: no writer's fields are lost."""

import asyncio
import os
import random
from collections import Counter
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest

import controller.runtime.conflict_backoff
from controller.runtime.plan import Apply, Observed, Plan, Step
from gatewright.testing.fake_apiserver.storage import StorageEvent
from kube.resource import JsonObject
from tests.controller.runtime.conftest import (
    CONFIGMAP,
    NAMESPACE,
    Running,
    Status,
    Thing,
    Things,
    configmap,
)

EDITS = int(os.environ.get("EDITS", "1000"))  # the workflow of the forge makes ten thousand
NAMES = [f"thing-{number}" for number in range(40)]


def plan(thing: Thing, observed: Observed, now: datetime) -> Plan:
    """Plan one ConfigMap with the values that the user and the autoscaler have set."""
    del observed, now
    spec = thing.spec
    child = configmap(thing.metadata["name"], size=str(spec.size), scale=str(spec.scale))
    return Plan((Step("config", [Apply(child)]),), Status({"size": spec.size}))


class Editors:
    """Writers in addition to the controller: the last value of each must survive all other writes."""

    def __init__(self, things: Things, chance: random.Random) -> None:
        self.server = things.server
        self.things = things
        self.chance = chance
        self.written: dict[tuple[str, str, str], Any] = {}
        """By kind, name and field: what somebody other than the controller wrote there last."""
        self.lost: list[str] = []
        self.server.storage.listeners.append(self.look)

    def edit(self) -> None:
        """Let one of the editors make an edit."""
        name, number = self.chance.choice(NAMES), self.chance.randrange(10**6)
        often: list[Callable[[str, int], None]] = [
            self.user,
            self.autoscaler,
            self.labeller,
            self.other_controller,
        ]
        seldom = [self.neighbour, self.vandal, self.remover]
        self.chance.choice([*often, *often, *often, *seldom])(name, number)

    def user(self, name: str, number: int) -> None:
        """Change the spec."""
        self.written["Thing", name, "spec.size"] = number
        self.server.change(self.things.resource, name, {"spec": {"size": number}}, NAMESPACE)

    def autoscaler(self, name: str, number: int) -> None:
        """Change another field of the spec."""
        self.written["Thing", name, "spec.scale"] = number
        self.server.change(self.things.resource, name, {"spec": {"scale": number}}, NAMESPACE)

    def labeller(self, name: str, number: int) -> None:
        """Label the object."""
        self.written["Thing", name, "metadata.labels.theirs"] = str(number)
        labels = {"metadata": {"labels": {"theirs": str(number)}}}
        self.server.change(self.things.resource, name, labels, NAMESPACE)

    def other_controller(self, name: str, number: int) -> None:
        """Write its own fields and its own condition into the status."""
        self.written["Thing", name, "status.theirs"] = number
        status = {
            "theirs": number,
            "conditions": [{"type": "Theirs", "status": "True", "reason": f"R{number}"}],
        }
        object: JsonObject = {"metadata": {"name": name, "namespace": NAMESPACE}, "status": status}
        self.server.apply(self.things.resource, object, "other-controller", "status")

    def neighbour(self, name: str, number: int) -> None:
        """Add fields to the child."""
        if self.server.get(CONFIGMAP, name, NAMESPACE):
            self.written["ConfigMap", name, "data.theirs"] = str(number)
            self.written["ConfigMap", name, "metadata.annotations.theirs"] = str(number)
            theirs = {
                "data": {"theirs": str(number)},
                "metadata": {"annotations": {"theirs": str(number)}},
            }
            self.server.change(CONFIGMAP, name, theirs, NAMESPACE)

    def vandal(self, name: str, number: int) -> None:
        """Change a field of the controller."""
        if self.server.get(CONFIGMAP, name, NAMESPACE):
            self.server.change(CONFIGMAP, name, {"data": {"size": f"wrong {number}"}}, NAMESPACE)

    def remover(self, name: str, number: int) -> None:
        """Delete the child, with the fields that others wrote."""
        del number
        if self.server.get(CONFIGMAP, name, NAMESPACE):
            for field in ("data.theirs", "metadata.annotations.theirs"):
                self.written.pop(("ConfigMap", name, field), None)
            self.server.delete(CONFIGMAP, name, NAMESPACE)

    def look(self, event: StorageEvent) -> None:
        """Compare a new state of an object with the fields that other writers wrote into it."""
        if event.new is None:
            return
        name = event.new["metadata"]["name"]
        for (kind, its, path), value in self.expected(event.new["kind"], name):
            if field(event.new, path) != value:
                self.lost.append(
                    f"{kind} {its}: {path} is {field(event.new, path)}, and was written to be {value}"
                )

    def expected(self, kind: str, name: str) -> list[tuple[tuple[str, str, str], Any]]:
        """Return the fields that other writers wrote into an object."""
        fields = ("spec.size", "spec.scale", "metadata.labels.theirs", "status.theirs")
        fields += ("data.theirs", "metadata.annotations.theirs")
        places = [(kind, name, each) for each in fields]
        return [(each, self.written[each]) for each in places if each in self.written]

    def is_settled(self, name: str) -> Callable[[JsonObject], bool]:
        """Return whether an object's child matches its spec, and its status has observed that."""

        def holds(thing: JsonObject) -> bool:
            child = self.server.get(CONFIGMAP, name, NAMESPACE)
            wanted = {key: str(thing["spec"][key]) for key in ("size", "scale")}
            is_seen_to = (
                thing.get("status", {}).get("observedGeneration") == thing["metadata"]["generation"]
            )
            return is_seen_to and child is not None and child["data"].items() >= wanted.items()

        return holds


def field(object: JsonObject, path: str) -> Any:
    """Return the value at a path."""
    value: Any = object
    for key in path.split("."):
        value = (value or {}).get(key)
    return value


@pytest.mark.usefixtures("hasty")
async def test_no_writer_loses_its_fields(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No field of another writer is ever reverted, and in the end all children match the specs."""
    monkeypatch.setattr(
        controller.runtime.conflict_backoff, "REPAIRS_WINDOW", 0.0
    )  # the responses to vandals have separate tests
    async with running(plan) as things:
        for name in NAMES:
            things.server.create(
                things.resource,
                {
                    "metadata": {"name": name, "namespace": NAMESPACE},
                    "spec": {"size": 0, "scale": 0},
                },
            )
        editors = Editors(things, random.Random(5))
        for _ in range(EDITS):
            editors.edit()
            if editors.chance.random() < 0.05:
                await asyncio.sleep(0)  # let the controller have a turn
        at_work = Counter(each.path for each in things.server.requests.writes)
        for name in NAMES:
            await things.until(things.resource, name, editors.is_settled(name))
            editors.vandal(
                name, 0
            )  # after the last change of the spec, which would have covered it up
        for name in NAMES:
            thing = await things.until(things.resource, name, editors.is_settled(name))
            conditions = {each["type"]: each for each in thing["status"]["conditions"]}
            assert conditions["Theirs"]["reason"] == f"R{thing['status']['theirs']}"
            assert conditions["Ready"]["status"] == "True"
    assert editors.lost == []
    assert len(editors.written) > 4 * len(NAMES)
    assert at_work.total() > EDITS / 100  # it wrote while they did
