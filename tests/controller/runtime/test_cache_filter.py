"""Caches keep the children of a process's kinds and what planners read, and nothing of other objects."""

from datetime import datetime
from typing import Any

import pytest

import controller.runtime.cache
from controller.runtime.kind import Reads
from controller.runtime.plan import Apply, Observed, Plan, Step
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

LARGE = "x" * 50_000


def by_app(object: JsonObject) -> list[str]:
    """Index by the label `app`."""
    app = (object["metadata"].get("labels") or {}).get("app")
    return [app] if app else []


def app_of(object: JsonObject) -> JsonObject:
    """Keep the label and one key."""
    return {
        "metadata": {"labels": {"app": object["metadata"]["labels"]["app"]}},
        "data": {"read": object["data"]["read"]},
    }


def plan(thing: Thing, observed: Observed, now: datetime) -> Plan:
    """Plan a ConfigMap of the thing's name."""
    del observed, now
    name = thing.metadata["name"]
    return Plan((Step("copy", [Apply(configmap(name))]),), Status())


def copy(thing: Thing, observed: Observed, now: datetime) -> Plan:
    """Copy a key of each ConfigMap of the thing's name."""
    del now
    name = thing.metadata["name"]
    found = observed.find(CONFIGMAP, "app", name)
    copied = {each["metadata"]["name"]: each["data"]["read"] for each in found}
    return Plan((Step("copy", [Apply(configmap(name, **copied))]),), Status())


READS = [Reads(CONFIGMAP, {"app": by_app}, fields=app_of)]


def foreign(things: Things, name: str, *, labels: dict[str, str] | None = None) -> JsonObject:
    """Create another owner's ConfigMap, which is large."""
    metadata: JsonObject = {"name": name, "namespace": NAMESPACE, "annotations": {"a": LARGE}}
    return things.server.create(
        CONFIGMAP,
        {"metadata": metadata | {"labels": labels or {}}, "data": {"read": "me", "large": LARGE}},
    )


def kept(things: Things, resource: Any = CONFIGMAP) -> dict[str, int]:
    """Return the bytes that the cache keeps of each object."""
    (store,) = things.manager.caches.part_of(resource).stores.values()
    return {key.partition("/")[2]: len(entry.raw) for key, entry in store.entries().items()}


async def test_other_owners_objects_are_not_cached(running: Running) -> None:
    """Whether they exist at the start, or come later; a Secret's metadata neither."""
    async with running(plan) as things:
        metadata = {"name": "s", "namespace": NAMESPACE, "annotations": {"a": LARGE}}
        things.server.create(SECRET, {"metadata": metadata})
        foreign(things, "early")
        things.create()
        await things.until_ready()
        things.server.close_watches()
        foreign(things, "late")
        await things.until_quiet()
        assert {each for each in kept(things) if not each.startswith("marker")} == {"thing"}
        assert kept(things, SECRET) == {}


async def test_only_what_a_planner_reads_is_cached_of_a_foreign_object(running: Running) -> None:
    """The planner finds it by its index and reads its fields; a change of it wakes the owner."""
    async with running(copy, reads=READS, indexes={"app": by_name}) as things:
        foreign(things, "theirs", labels={"app": "thing"})
        things.create()
        await things.until(CONFIGMAP, "thing", lambda each: each["data"] == {"theirs": "me"})
        assert kept(things)["theirs"] < 1_000
        change = {"data": {"read": "it"}}
        things.server.change(CONFIGMAP, "theirs", change, NAMESPACE)
        await things.until(CONFIGMAP, "thing", lambda each: each["data"] == {"theirs": "it"})
        unlabelled = {"metadata": {"labels": None}}
        things.server.change(CONFIGMAP, "theirs", unlabelled, NAMESPACE)
        await things.until(CONFIGMAP, "thing", lambda each: not each.get("data"))
        await things.until_quiet()
        assert "theirs" not in kept(things)


async def test_a_child_that_loses_its_owner_wakes_it(running: Running) -> None:
    """The object is no longer cached, and the owner adopts it again, by its mark."""
    async with running(plan) as things:
        things.create()
        await things.until_ready()
        orphaned = {"metadata": {"ownerReferences": None}}
        things.server.change(CONFIGMAP, "thing", orphaned, NAMESPACE)
        await things.until(
            CONFIGMAP, "thing", lambda each: bool(each["metadata"].get("ownerReferences"))
        )


def by_name(object: JsonObject) -> list[str]:
    """Index by name."""
    return [object["metadata"]["name"]]


def claim(things: Things, name: str, owners: Any) -> None:
    """Create a large ConfigMap that names another's parent as its controller."""
    metadata = {"name": name, "namespace": NAMESPACE, "ownerReferences": owners}
    things.server.create(CONFIGMAP, {"metadata": metadata, "data": {"large": LARGE}})


async def test_objects_that_name_a_parent_are_cached_up_to_a_limit(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Anybody may name a parent; the children that it plans are cached all the same."""
    monkeypatch.setattr(controller.runtime.cache, "MAX_UNREQUESTED", 2 * len(LARGE))
    monkeypatch.setattr(controller.runtime.cache, "MAX_UNREQUESTED_EACH", 0)
    async with running(plan) as things:
        things.create()
        owners = (await things.until(CONFIGMAP, "thing"))["metadata"]["ownerReferences"]
        for number in range(5):
            claim(things, f"n{number}", owners)
        things.server.close_watches()
        claim(things, "n5", [{**owners[0], "uid": "of-nobody"}])
        await things.until_quiet()
        assert {each for each in kept(things) if each.startswith("n")} == {"n0"}
        assert "thing" in kept(things)
        things.server.delete(CONFIGMAP, "n0", NAMESPACE)
        things.server.change(CONFIGMAP, "n4", {"data": {"a": "b"}}, NAMESPACE)
        await things.until_quiet()
        assert {each for each in kept(things) if each.startswith("n")} == {"n4"}


async def test_a_child_that_the_cache_omits_is_read_and_kept_right(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a start, others' objects may take all the room; no child is written without a need."""
    monkeypatch.setattr(controller.runtime.cache, "MAX_UNREQUESTED", 0)
    monkeypatch.setattr(controller.runtime.cache, "MAX_UNREQUESTED_EACH", 0)

    def plan_sized(thing: Thing, observed: Observed, now: datetime) -> Plan:
        del now
        name, size = thing.metadata["name"], str(thing.spec.size)
        child = observed.child(CONFIGMAP, name)
        is_ready = child is not None and child["data"]["size"] == size
        return Plan((Step("copy", [Apply(configmap(name, size=size))], ready=is_ready),), Status())

    async with running(plan_sized) as things:
        things.create()
        await things.until_ready()
    things.server.requests.clear()
    async with running(plan_sized) as things:
        await things.until_quiet()
        assert [each for each in things.writes() if "marker" not in each] == []
        assert "thing" not in kept(things)
        things.server.delete(CONFIGMAP, "thing", NAMESPACE)  # the first that is heard of it
        await things.until(CONFIGMAP, "thing")
        things.server.change(CONFIGMAP, "thing", {"data": {"size": "9"}}, NAMESPACE)
        await things.until(CONFIGMAP, "thing", lambda child: child["data"]["size"] == "1")
        await things.until_quiet()
        assert "thing" in kept(things)
        await things.until_ready()
