"""Whoever keeps changing back what we apply is answered now and then, and everybody can see it."""

import asyncio
import time

import pytest

from controller.runtime import contests
from controller.runtime.contests import Contests
from controller.runtime.events import EVENT
from tests.controller.runtime.conftest import CONFIGMAP, NAMESPACE, Running, Things
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


class Rewriter:
    """Somebody else's controller, with another opinion on our field."""

    def __init__(self, things: Things) -> None:
        self.things = things
        self.rounds = 0

    async def run(self) -> None:
        """Change the field whenever it has our value."""
        while True:
            await self.things.until(CONFIGMAP, "thing", lambda each: bool(each["data"]["size"] == "1"))
            self.things.server.change(CONFIGMAP, "thing", {"data": {"size": "theirs"}}, NAMESPACE)
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


async def test_who_is_overruled_on_the_way_in_does_not_insist(running: Running) -> None:
    """A mutating webhook that rewrites our field costs one write: what the server answers is what is compared."""
    async with running(single) as things:
        things.server.mutate(lambda each: each | {"data": {"size": "theirs"}} if "data" in each else each)
        things.create()
        await things.until_ready()
        things.server.change(CONFIGMAP, "thing", {"metadata": {"annotations": {"a": "b"}}}, NAMESPACE)
        await things.until_quiet()
    assert things.writes().count("PATCH configmaps/thing") == 1
