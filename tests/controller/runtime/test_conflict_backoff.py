"""Another writer keeps reverting a field: repairs back off, and the status reports the conflict."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from typing import Any

import pytest

from controller.runtime import conflict_backoff
from controller.runtime.applied import APPLIED
from controller.runtime.apply import FIELD_MANAGER
from controller.runtime.conflict_backoff import Conflicts, ContestedError, WrittenObject
from controller.runtime.events import EVENT
from controller.runtime.kind import Reads
from controller.runtime.plan import ApplyFields, Observed, Plan, Reference, Step
from controller.runtime.types import ReconcileRequest
from kube.resource import JsonObject
from tests.controller.runtime.clock import Clock
from tests.controller.runtime.conftest import (
    CONFIGMAP,
    NAMESPACE,
    Running,
    Status,
    Thing,
    Things,
)
from tests.controller.runtime.test_reconciler import single

MESSAGE = (
    "ConfigMap thing: data.size is changed again and again by somebody; it is restored once a minute. Change Thing "
    "thing instead, or stop the other writer"
)
PLACE = WrittenObject(ReconcileRequest(NAMESPACE, "thing"), CONFIGMAP, "default/thing")


def contested(of: Conflicts, *, repair: bool) -> float | None:
    """In how many seconds a contested object is looked at again; None if it is not contested."""
    try:
        of.check(PLACE, "sent", repair=repair)
    except ContestedError as error:
        return error.retry_after
    return None


def repair(of: Conflicts, field: str = "data.size") -> None:
    """Count a repair; raise if it makes this a contest."""
    with suppress(ContestedError):
        of.record_repair(PLACE, "sent", field, "why")


def test_some_changes_are_repaired_at_once() -> None:
    """Four in ten minutes, and any number over a longer time, are no contest."""
    clock = Clock()
    of = Conflicts(clock)
    for pause in (1, 1, 1, 600, 200, 200, 200):
        assert contested(of, repair=True) is None
        repair(of)
        assert contested(of, repair=False) is None
        clock.now += pause


def test_a_contested_field_is_repaired_once_a_minute_until_the_contest_ends() -> None:
    """An hour of rewriting causes 64 repairs; two minutes without a rewrite, or a new plan, end the contest."""
    clock = Clock()
    of = Conflicts(clock)
    repairs = 0
    for _ in range(3600):
        if contested(of, repair=True) is None:
            repair(of)
            repairs += 1
        clock.now += 1
    assert repairs == 64
    assert contested(of, repair=False) == 4
    of.check(PLACE, "another", repair=True)
    assert contested(of, repair=True) is None


def test_a_contested_field_that_stays_right_is_checked_twice() -> None:
    """Once when it could be repaired again, and once when it was not changed any more; not every second in between."""
    clock = Clock()
    of = Conflicts(clock)
    for _ in range(conflict_backoff.MAX_REPAIRS):
        repair(of)

    def waits() -> Iterator[float]:
        while (wait := contested(of, repair=False)) is not None:
            yield wait
            clock.now += wait

    assert list(waits()) == [60, 60]


class Rewriter:
    """Somebody else's controller, with another opinion on our field."""

    def __init__(self, things: Things, name: str = "thing") -> None:
        self.things = things
        self.name = name
        self.rounds = 0

    async def run(self) -> None:
        """Change the field whenever it has our value."""
        while True:
            await self.things.until(
                CONFIGMAP, self.name, lambda each: bool(each["data"]["size"] == "1")
            )
            self.things.server.change(CONFIGMAP, self.name, {"data": {"size": "theirs"}}, NAMESPACE)
            self.rounds += 1


def test_five_repairs_of_one_field_in_ten_minutes_are_a_contest() -> None:
    """A slow writer is reported, too; the contest ends after twice the pause between its writes."""
    clock = Clock()
    of = Conflicts(clock)
    for _ in range(conflict_backoff.MAX_REPAIRS):
        assert contested(of, repair=True) is None
        repair(of)
        clock.now += 140
    assert contested(of, repair=False) == 2 * 140 - 140
    clock.now += 140
    assert contested(of, repair=False) is None


def test_repairs_of_several_fields_are_no_contest() -> None:
    """A person may edit an object five times, each time something else."""
    of = Conflicts(Clock())
    for number in range(2 * conflict_backoff.MAX_REPAIRS):
        repair(of, f"data.{number}")
    assert contested(of, repair=False) is None


async def test_who_changes_the_annotation_is_no_new_plan(running: Running) -> None:
    """A second controller with other settings applies under the same name: that is a contest."""
    async with running(single) as things, asyncio.TaskGroup() as group:
        things.create()
        await things.until_ready()

        async def apply_another_plan() -> None:
            while True:
                other = {"name": "thing", "namespace": NAMESPACE, "annotations": {APPLIED: "other"}}
                stored = await things.until(
                    CONFIGMAP, "thing", lambda each: bool(each["data"]["size"] == "1")
                )
                kept = {"ownerReferences": stored["metadata"]["ownerReferences"]}
                applied = {"metadata": other | kept, "data": {"size": "2"}}
                things.server.apply(CONFIGMAP, applied, FIELD_MANAGER)

        fighting = group.create_task(apply_another_plan())
        ready = await things.until_ready("False", "Contested")
        fighting.cancel()
    assert ready["message"] == (
        "ConfigMap thing: data.size is changed again and again by another Gatewright controller; it is restored once "
        "a minute. Let one installation reconcile each kind and namespace (--kinds, --namespaces)"
    )


async def test_a_field_that_is_rewritten_again_and_again(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There are few writes, a condition with field and manager, and one Warning; other objects are reconciled."""
    monkeypatch.setattr(conflict_backoff, "REPAIR_INTERVAL", 0.2)
    monkeypatch.setattr(conflict_backoff, "CONTEST_END", 0.4)
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
    assert (event["type"], event["note"], event["regarding"]["name"]) == (
        "Warning",
        MESSAGE,
        "thing",
    )
    assert (
        written.count("PATCH configmaps/thing")
        <= conflict_backoff.MAX_REPAIRS + lasted / conflict_backoff.REPAIR_INTERVAL
    )
    assert written.count("PATCH things/thing/status") == 1
    assert child["data"] == {"size": "1"}
    reasons = [each["reason"] for each in things.server.list(EVENT)]
    assert [each for each in reasons if each not in ("Created", "Ready", "Restored")] == [
        "Contested"
    ]


def patching(thing: Thing, observed: Observed, now: datetime) -> Plan:
    """Set a field of somebody else's ConfigMap."""
    del now
    is_marker = thing.metadata["name"] != "thing"
    found = (
        []
        if is_marker
        else [each["metadata"] for each in observed.find(CONFIGMAP, "name", "theirs")]
    )
    patches = [
        ApplyFields(
            Reference(CONFIGMAP, metadata["name"], metadata["uid"], NAMESPACE),
            {"data": {"size": str(thing.spec.size)}},
        )
        for metadata in found
    ]
    return Plan((Step("patch", patches, ready=bool(found) or is_marker),), Status())


READS: dict[str, Any] = {
    "owns": (),
    "reads": (Reads(CONFIGMAP, {"name": lambda each: [each["metadata"]["name"]]}),),
    "patches": (CONFIGMAP,),
}
THEIRS: JsonObject = {
    "metadata": {"name": "theirs", "namespace": NAMESPACE},
    "data": {"size": "theirs"},
}


@pytest.mark.long
async def test_a_field_of_others_is_not_fought_for(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A writer that reverts a field repeatedly is overridden with growing delays, like for our own fields."""
    monkeypatch.setattr(conflict_backoff, "REPAIR_INTERVAL", 0.1)
    monkeypatch.setattr(conflict_backoff, "CONTEST_END", 0.2)
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
        "ConfigMap theirs: data.size is changed again and again by somebody; it is restored once a minute. Change "
        "Thing thing instead, or stop the other writer"
    )
    assert (
        written.count("PATCH configmaps/theirs")
        <= conflict_backoff.MAX_REPAIRS + lasted / conflict_backoff.REPAIR_INTERVAL
    )
    assert theirs["data"] == {"size": "1"}


async def test_a_patch_that_a_webhook_overrides_is_not_sent_again(running: Running) -> None:
    """Even if the object changes, a mutating webhook that rewrites the field costs one write per value."""
    async with running(patching, **READS) as things:
        things.server.mutate(
            lambda each: each | {"data": {"size": "theirs"}} if "data" in each else each
        )
        things.server.create(CONFIGMAP, THEIRS)
        things.create()
        await things.until_ready()
        things.server.change(
            CONFIGMAP, "theirs", {"metadata": {"annotations": {"a": "b"}}}, NAMESPACE
        )
        await things.until_quiet()
        assert things.writes().count("PATCH configmaps/theirs") == 1
        things.server.change(things.resource, "thing", {"spec": {"size": 2}}, NAMESPACE)
        await things.until(
            things.resource, "thing", lambda each: bool(each["status"]["observedGeneration"] == 2)
        )
        await things.until_quiet()
    assert things.writes().count("PATCH configmaps/theirs") == 2


async def test_a_field_that_a_webhook_overrides_is_not_applied_again(running: Running) -> None:
    """A mutating webhook that rewrites our field costs one write: the server's response is compared."""
    async with running(single) as things:
        things.server.mutate(
            lambda each: each | {"data": {"size": "theirs"}} if "data" in each else each
        )
        things.create()
        await things.until_ready()
        things.server.change(
            CONFIGMAP, "thing", {"metadata": {"annotations": {"a": "b"}}}, NAMESPACE
        )
        await things.until_quiet()
    assert things.writes().count("PATCH configmaps/thing") == 1
