"""The cost of many objects: memory proportional to their JSON, and no long blocking of the event loop."""

import asyncio
import gc
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager

import orjson
import pytest

import kube.watch
from controller.runtime.apply import FIELD_MANAGER
from controller.runtime.types import ReconcileRequest
from gatewright.testing.fake_apiserver import FakeApiServer
from kube.client import Client
from kube.resource import Resource
from kube.store import Store
from kube.watch import Watch
from tests.controller.runtime.conftest import CONFIGMAP, NAMESPACE, Running
from tests.controller.runtime.test_reconciler import single
from tests.waiting import WITHIN

OBJECTS = 400
TEXT = "x" * 5600
OTHERS = {
    "manager": "somebody",
    "operation": "Update",
    "fieldsV1": {f"f:{'field' * 40}-{n}": {} for n in range(10)},
}


def deployment(number: int, version: int) -> bytes:
    """A Deployment of six kilobytes as sent by the API server, with two more kilobytes of managedFields."""
    fields = {
        "f:metadata": {
            "f:labels": {"f:app": {}},
            "f:ownerReferences": {f'k:{{"uid":"{number}"}}': {}},
        }
    }
    owner = {
        "apiVersion": "a/v1",
        "kind": "A",
        "name": f"a-{number}",
        "uid": f"owner-{number}",
        "controller": True,
    }
    metadata = {
        "name": f"deployment-{number}",
        "namespace": NAMESPACE,
        "uid": f"uid-{number}",
        "resourceVersion": str(version),
        "generation": version,
        "labels": {"app": f"app-{number}", "managed-by": "a-test"},
        "annotations": {"text": TEXT[:200]},
        "ownerReferences": [owner],
        "managedFields": [
            {"manager": FIELD_MANAGER, "operation": "Apply", "fieldsV1": fields},
            OTHERS,
        ],
    }
    return orjson.dumps({"metadata": metadata, "spec": {"replicas": number, "text": TEXT}})


@contextmanager
def measured() -> Iterator[list[int]]:
    """Yield a list that gets, at the end, by how many bytes memory grew meanwhile."""
    grown: list[int] = []
    gc.collect()
    tracemalloc.start()
    try:
        yield grown
        gc.collect()
        grown.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()


@pytest.mark.long
def test_a_store_costs_little_more_than_the_json_in_it() -> None:
    """It takes at most 1.2 times the JSON without `managedFields`, and never grows."""
    store = Store(Resource("apps", "v1", "deployments", "Deployment"))
    size = sum(len(deployment(number, 1)) - len(orjson.dumps(OTHERS)) for number in range(OBJECTS))
    with measured() as filled:
        for number in range(OBJECTS):
            store.put(orjson.loads(deployment(number, 1)))
    with measured() as churned:
        for version in range(2, 6):
            for number in range(OBJECTS):
                store.put(orjson.loads(deployment(number, version)))
            for number in range(0, OBJECTS, 7):
                store.remove(store.key_of(orjson.loads(deployment(number, version))))
                store.put(orjson.loads(deployment(number, version)))
    assert filled[0] <= 1.2 * size
    assert (
        churned[0] <= 1.2 * size
    )  # what was there before is not counted any more once it is replaced
    assert len(store) == OBJECTS


async def test_deleted_objects_leave_nothing_in_memory(running: Running) -> None:
    """Objects that were created, failed and were deleted leave nothing in memory, however many they were."""
    names = [f"fleeting-{number}" for number in range(50)]
    async with running(single) as things:
        things.server.fail(20, 409, method="PATCH", path="/configmaps/")
        for name in names:
            things.create(name)
        for name in names:
            await things.until_ready(name=name)
            things.server.delete(things.resource, name, NAMESPACE)
        for name in names:
            await things.until_gone(CONFIGMAP, name)
        await things.until_quiet()
        await things.until_quiet()
    gc.collect()
    tracked = gc.get_objects()
    requests = {each.name for each in tracked if isinstance(each, ReconcileRequest)} & set(names)
    places = [
        value
        for value in tracked
        if type(value) is tuple and len(value) == 2 and isinstance(value[0], Resource)
    ]
    remembered = {each[1] for each in places} & {f"{NAMESPACE}/{name}" for name in names}
    series = "".join(str(each) for each in things.manager.metrics.registry.collect())
    assert requests == set()
    assert remembered == set()
    assert "fleeting" not in series


async def test_a_large_list_does_not_block_the_event_loop(server: FakeApiServer) -> None:
    """Between two turns of the event loop no more is taken than fits into a few milliseconds."""
    for number in range(OBJECTS):
        server.create(
            CONFIGMAP,
            {"metadata": {"name": f"a-{number}", "namespace": NAMESPACE}, "data": {"text": TEXT}},
        )
    taken, most = 0, 0

    async def turn() -> None:
        nonlocal taken, most
        while True:
            most, taken = max(most, taken), 0
            await asyncio.sleep(0)

    def take(_: object) -> None:
        nonlocal taken
        taken += 1

    async with (
        Client(server.endpoint) as client,
        asyncio.timeout(WITHIN),
        asyncio.TaskGroup() as group,
    ):
        watch = Watch(client, CONFIGMAP, Store(CONFIGMAP))
        watch.store.subscribers.append(take)
        tasks = [group.create_task(watch.run()), group.create_task(turn())]
        await watch.store.synced.wait()
        for task in tasks:
            task.cancel()
    assert len(watch.store) == OBJECTS
    assert 0 < most <= kube.watch.BATCH
