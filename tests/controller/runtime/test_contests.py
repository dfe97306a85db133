"""Whoever keeps changing back what we apply is answered now and then, and everybody can see it."""

import asyncio
import time
from datetime import datetime
from typing import Any

import pytest

from controller.runtime import contests
from controller.runtime.claims import FIELD_MANAGER
from controller.runtime.contests import Contests, last_manager
from controller.runtime.events import EVENT
from controller.runtime.plan import Patch, Plan, Reference, Seen, Step
from controller.runtime.planned_kind import Reads
from tests.controller.runtime.conftest import CONFIGMAP, NAMESPACE, Object, Running, Status, Thing, Things
from tests.controller.runtime.test_leader import Clock
from tests.controller.runtime.test_planned import single

MESSAGE = (
    "failed to create config: ConfigMap thing: data.size is changed again and again by somebody, and put back once a "
    "minute"
)


def test_some_changes_are_put_back_at_once() -> None:
    """Four in a minute, and any number over a longer time, are no contest."""
    clock = Clock()
    of = Contests(clock)
    for pause in (1, 1, 1, 60, 20, 20, 20):
        assert of.may_put_right("a")
        of.put_right("a", "why")
        assert of.error("a") is None
        clock.now += pause


def test_a_contest_is_answered_once_a_minute_and_ends_by_itself() -> None:
    """In an hour of rewriting we write 64 times; two minutes without are its end."""
    clock = Clock()
    of = Contests(clock)
    written = 0
    for _ in range(3600):
        if of.may_put_right("a"):
            of.put_right("a", "why")
            written += 1
        clock.now += 1
    assert written == 64
    error = of.error("a")
    assert error is not None
    assert (str(error), error.retry_after) == ("why", 4)
    assert of.error("b") is None
    clock.now += 120
    assert of.error("a") is None
    assert of.may_put_right("a")


def test_what_stays_right_is_looked_at_twice_until_it_is_over() -> None:
    """Once it could be put right again, and once when nobody changed it any more; not every second in between."""
    clock = Clock()
    of = Contests(clock)
    for _ in range(contests.OFTEN):
        of.put_right("a", "why")
    waits = []
    while error := of.error("a"):
        assert error.retry_after is not None
        waits.append(error.retry_after)
        clock.now += error.retry_after
    assert waits == [60, 60]


def test_who_scales_is_named_and_who_reports_is_not() -> None:
    """What is written through /scale, as autoscalers and kubectl do, counts; a status does not, nor what is ours."""
    written = [("hpa", "scale", 3), ("deployer", "", 1), ("reporter", "status", 5), (FIELD_MANAGER, "", 6)]
    managed = [
        {"manager": manager, "subresource": subresource, "time": f"2026-01-01T00:00:0{second}Z"}
        for manager, subresource, second in written
    ]
    assert last_manager({"metadata": {"managedFields": managed}}) == "hpa"
    assert last_manager({"metadata": {}}) == "somebody"


class Rewriter:
    """Somebody else's controller, with another opinion on our field."""

    def __init__(self, things: Things, name: str = "thing") -> None:
        self.things = things
        self.name = name
        self.rounds = 0

    async def run(self) -> None:
        """Change the field whenever it has our value."""
        while True:
            await self.things.until(CONFIGMAP, self.name, lambda each: bool(each["data"]["size"] == "1"))
            self.things.server.change(CONFIGMAP, self.name, {"data": {"size": "theirs"}}, NAMESPACE)
            self.rounds += 1


async def test_a_field_that_is_rewritten_again_and_again(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few writes, a condition that names field and rival, one Warning; other objects go on, and it ends by itself."""
    monkeypatch.setattr(contests, "REST", 0.2)
    monkeypatch.setattr(contests, "OVER", 0.4)
    async with running(single) as things, asyncio.TaskGroup() as group:
        things.create()
        await things.until_ready()
        things.server.requests.clear()
        began = time.monotonic()
        rewriter = Rewriter(things)
        rewriting = group.create_task(rewriter.run())
        ready = await things.until_ready("False", "Contested")
        event = await things.until_told("Contested")
        await things.until_quiet()
        written, lasted = things.writes(), time.monotonic() - began
        rewriting.cancel()
        await things.until_ready()
        child = await things.until(CONFIGMAP, "thing")
    assert ready["message"] == MESSAGE
    assert (event["type"], event["note"], event["regarding"]["name"]) == ("Warning", MESSAGE, "thing")
    assert written.count("PATCH configmaps/thing") <= contests.OFTEN + lasted / contests.REST
    assert written.count("PATCH things/thing/status") == 1
    assert child["data"] == {"size": "1"}
    assert [each["reason"] for each in things.server.list(EVENT)] == ["Contested"]


def patching(thing: Thing, seen: Seen, now: datetime) -> Plan:
    """Set a field of somebody else's ConfigMap."""
    del now
    is_marker = thing.metadata["name"] != "thing"
    found = [] if is_marker else [each["metadata"] for each in seen.find(CONFIGMAP, "name", "theirs")]
    patches = [
        Patch(Reference(CONFIGMAP, each["name"], each["uid"], NAMESPACE), {"data": {"size": str(thing.spec.size)}})
        for each in found
    ]
    return Plan((Step("patch", patches, holds=bool(found) or is_marker),), Status())


READS: dict[str, Any] = {
    "owns": (),
    "reads": (Reads(CONFIGMAP, {"name": lambda each: [each["metadata"]["name"]]}),),
    "patches": (CONFIGMAP,),
}
THEIRS: Object = {"metadata": {"name": "theirs", "namespace": NAMESPACE}, "data": {"size": "theirs"}}


async def test_a_field_of_others_is_not_fought_for(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who sets it back again and again is answered now and then, as with what is ours."""
    monkeypatch.setattr(contests, "REST", 0.1)
    monkeypatch.setattr(contests, "OVER", 0.2)
    async with running(patching, **READS) as things, asyncio.TaskGroup() as group:
        things.server.create(CONFIGMAP, THEIRS)
        things.create()
        await things.until_ready()
        things.server.requests.clear()
        began = time.monotonic()
        rewriting = group.create_task(Rewriter(things, "theirs").run())
        ready = await things.until_ready("False", "Contested")
        written, lasted = things.writes(), time.monotonic() - began
        rewriting.cancel()
        await things.until_ready()
        theirs = await things.until(CONFIGMAP, "theirs")
    assert ready["message"] == (
        "failed to create patch: ConfigMap theirs: data.size is changed again and again by somebody"
    )
    assert written.count("PATCH configmaps/theirs") <= contests.OFTEN + lasted / contests.REST
    assert theirs["data"] == {"size": "1"}


async def test_a_patch_that_is_overruled_on_the_way_in_is_not_sent_again(running: Running) -> None:
    """Whatever becomes of the object: a mutating webhook that rewrites the field costs one write for each value."""
    async with running(patching, **READS) as things:
        things.server.mutate(lambda each: each | {"data": {"size": "theirs"}} if "data" in each else each)
        things.server.create(CONFIGMAP, THEIRS)
        things.create()
        await things.until_ready()
        things.server.change(CONFIGMAP, "theirs", {"metadata": {"annotations": {"a": "b"}}}, NAMESPACE)
        await things.until_quiet()
        assert things.writes().count("PATCH configmaps/theirs") == 1
        things.server.change(things.resource, "thing", {"spec": {"size": 2}}, NAMESPACE)
        await things.until(things.resource, "thing", lambda each: bool(each["status"]["observedGeneration"] == 2))
        await things.until_quiet()
    assert things.writes().count("PATCH configmaps/theirs") == 2


async def test_who_is_overruled_on_the_way_in_does_not_insist(running: Running) -> None:
    """A mutating webhook that rewrites our field costs one write: what the server answers is what is compared."""
    async with running(single) as things:
        things.server.mutate(lambda each: each | {"data": {"size": "theirs"}} if "data" in each else each)
        things.create()
        await things.until_ready()
        things.server.change(CONFIGMAP, "thing", {"metadata": {"annotations": {"a": "b"}}}, NAMESPACE)
        await things.until_quiet()
    assert things.writes().count("PATCH configmaps/thing") == 1
