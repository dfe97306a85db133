"""No stored object ends the process: it gets a condition or an event, and reconciles of others continue.

An object can be malformed where its CustomResourceDefinition, or an earlier version of it, has no
schema, or the kind has become stricter.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from copy import deepcopy
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from controller.reconcilers import planned_kinds
from controller.runtime.kind import PlannedKind
from controller.runtime.manager import Manager
from gatewright.testing import ApiServer
from kube.resource import JsonObject
from tests.controller.reconcilers.every_kind import NAMESPACE, cases
from tests.waiting import eventually

JUNK: tuple[Any, ...] = (
    None,
    "x",
    7,
    -1.5,
    True,
    [],
    {},
    [1],
    [{}],
    [None],
    {"a": 1},
    {"name": {}},
)
STATUSES: tuple[Any, ...] = (
    *JUNK,
    *({"conditions": junk, "observedGeneration": junk, "phase": junk} for junk in JUNK),
    *({"conditions": [{"type": "Ready", "status": junk, "reason": junk}]} for junk in JUNK),
)
OBJECTS = 60  # of each kind
WITHIN = 60.0


def with_junk(value: Any, chance: random.Random) -> Any:
    """Return a value with junk in place of one of its parts, or of the whole value."""
    changed = deepcopy(value)
    places: list[tuple[Any, Any]] = list(parts(changed))
    if not places or chance.random() < 0.1:
        return chance.choice(JUNK)
    holder, key = chance.choice(places)
    holder[key] = chance.choice(JUNK)
    return changed


def parts(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each part of a value: its container, and its key there."""
    found = enumerate(value) if isinstance(value, list) else ()
    for key, each in value.items() if isinstance(value, dict) else found:
        yield value, key
        yield from parts(each)


def malformed(kind: PlannedKind[Any]) -> Iterator[JsonObject]:
    """Yield malformed objects of a kind, derived from the samples."""
    chance = random.Random(kind.name)
    samples = [case.object for case in cases() if case.kind is kind]
    for number in range(OBJECTS):
        sample = deepcopy(chance.choice(samples))
        sample["metadata"]["name"] = f"malformed-{number}"
        if chance.random() < 0.75:
            sample["spec"] = with_junk(sample.get("spec"), chance)
        if chance.random() < 0.5:
            sample["status"] = chance.choice(STATUSES)
        yield sample


def store(server: ApiServer, kind: PlannedKind[Any], object: JsonObject) -> None:
    """Store an object with its status, which only a second write can set."""
    server.create(kind.resource, object)
    status, name = {"status": object.get("status")}, object["metadata"]["name"]
    server.change(kind.resource, name, status, NAMESPACE, "status")


@asynccontextmanager
async def all_kinds(server: ApiServer) -> AsyncIterator[Manager]:
    """Run the controllers of all kinds; leaving fails if they ended before."""
    manager = Manager(server.endpoint, CollectorRegistry(), identity="test")
    for kind in planned_kinds():
        manager.add_kind(kind, settings={"registry": ""})
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(manager.run(stop))
        try:
            yield manager
        finally:
            stop.set()


def unreported(server: ApiServer, kind: PlannedKind[Any]) -> set[str]:
    """Return the objects of a kind that has no condition and no event yet."""
    told = {each.split("/", 1)[1].partition(":")[0] for each in server.events}
    objects = server.list(kind.resource, NAMESPACE)
    return {each["metadata"]["name"] for each in objects if not has_ready(each)} - told


def has_ready(object: JsonObject) -> bool:
    """Tell whether an object has the condition Ready, as a controller writes it."""
    status = object.get("status")
    conditions = status.get("conditions") if isinstance(status, dict) else None
    return isinstance(conditions, list) and any(
        isinstance(condition, dict)
        and condition.get("type") == "Ready"
        and condition.get("lastTransitionTime")
        for condition in conditions
    )


@pytest.mark.long
@pytest.mark.parametrize("kind", planned_kinds(), ids=lambda kind: kind.name)
async def test_a_malformed_object_is_its_own_failure(kind: PlannedKind[Any]) -> None:
    """Each has a condition or an event, whether it exists at the start or is created and changed later."""
    sample = next(case.object for case in cases() if case.kind is kind)
    good = {**sample, "metadata": {**sample["metadata"], "name": "good"}}
    bad = list(malformed(kind))
    async with ApiServer() as server:
        for served_kind in planned_kinds():
            for resource in {served_kind.resource, *served_kind.owns, *served_kind.reads} - {
                *served_kind.optional
            }:
                if not server.serves(resource):
                    server.serve(resource)
        for each in bad[::2]:
            store(server, kind, each)
        async with asyncio.timeout(WITHIN), all_kinds(server) as manager:
            for each in bad[1::2]:
                store(server, kind, each)
            for each in bad[:5]:
                labels = {"metadata": {"labels": {"changed": "yes"}}, "spec": sample.get("spec")}
                server.change(kind.resource, each["metadata"]["name"], labels, NAMESPACE)
            server.create(kind.resource, good)
            await eventually(lambda: not unreported(server, kind))
            assert manager.unready() is None
            generate_latest(manager.metrics.registry)
