"""A manager that becomes leader decides nothing from caches that are older than the take-over."""

import asyncio

from prometheus_client import CollectorRegistry

from controller.runtime.leader import LEASE, LeaseSettings
from controller.runtime.manager import Manager
from gatewright.testing.fake_apiserver import FakeApiServer
from gatewright.testing.fake_apiserver.storage import StorageEvent
from kube.resource import JsonObject, Resource
from tests.controller.runtime.conftest import (
    CONFIGMAP,
    NAMESPACE,
    Things,
    configmap,
    kind_of,
)
from tests.controller.runtime.test_reconciler import single
from tests.waiting import WITHIN

ABSENT = Resource("monitoring.example.com", "v1", "monitors", "Monitor")
HELD: JsonObject = {
    "metadata": {"name": "lock", "namespace": NAMESPACE},
    "spec": {"holderIdentity": "the-leader", "leaseDurationSeconds": 3600},
}


async def test_a_standby_takes_over_with_fresh_caches(server: FakeApiServer) -> None:
    """Its watches were silently dead: before its first write, it reads the last leader's writes."""
    lease = LeaseSettings(NAMESPACE, "lock", duration=15, renew_deadline=10, retry_period=0.05)
    manager = Manager(server.endpoint, CollectorRegistry(), identity="standby", lease=lease)
    kind = kind_of(single, reads=(ABSENT,), optional=(ABSENT,))
    manager.add_kind(kind)
    things, stop, sizes = Things(server, manager, kind), asyncio.Event(), list[str]()
    server.create(LEASE, HELD)
    things.create(size=1)
    async with asyncio.timeout(WITHIN), asyncio.TaskGroup() as group:
        group.create_task(manager.run(stop))
        await server.requests.until(
            lambda requests: sum(each.code == 200 for each in requests.watches) == 3
        )
        for watcher in server.watches.open:
            watcher.silent = True
        thing = server.change(kind.resource, "thing", {"spec": {"size": 2}}, NAMESPACE)
        owner = {
            "apiVersion": "test.example/v1",
            "kind": "Thing",
            "name": "thing",
            "uid": thing["metadata"]["uid"],
        }
        metadata = {
            "name": "thing",
            "namespace": NAMESPACE,
            "ownerReferences": [{**owner, "controller": True}],
        }
        server.create(CONFIGMAP, configmap("thing", size="2") | {"metadata": metadata})

        def note(event: StorageEvent) -> None:
            if event.new and event.new["kind"] == "ConfigMap":
                sizes.append(event.new["data"]["size"])

        server.storage.listeners.append(note)
        server.change(LEASE, "lock", {"spec": {"holderIdentity": None}}, NAMESPACE)
        await things.until_ready()
        assert manager.unready() is None
        stop.set()
    assert set(sizes) == {"2"}


async def test_the_first_leader_lists_everything_once(server: FakeApiServer) -> None:
    """There was no previous leader, so its initial lists are current."""
    lease = LeaseSettings(NAMESPACE, "lock")
    manager = Manager(server.endpoint, CollectorRegistry(), identity="first", lease=lease)
    kind = kind_of(single)
    manager.add_kind(kind)
    things, stop = Things(server, manager, kind), asyncio.Event()
    things.create()
    async with asyncio.timeout(WITHIN), asyncio.TaskGroup() as group:
        group.create_task(manager.run(stop))
        await things.until_ready()
        stop.set()
    read = [
        logged_request.path.rpartition("/")[2]
        for logged_request in server.requests.log
        if logged_request.method == "GET" and not logged_request.watch
    ]
    assert [read.count(each) for each in ("things", "configmaps", "secrets")] == [1, 1, 1]


async def test_a_manager_without_controllers_leads_until_it_is_stopped(
    server: FakeApiServer,
) -> None:
    """`gatewright controller --kinds none` is idle; it does not fail."""
    lease = LeaseSettings(NAMESPACE, "lock", duration=15, renew_deadline=10, retry_period=0.05)
    manager = Manager(server.endpoint, CollectorRegistry(), identity="idle", lease=lease)
    stop = asyncio.Event()
    async with asyncio.timeout(WITHIN), asyncio.TaskGroup() as group:
        group.create_task(manager.run(stop))
        await server.requests.until(
            lambda requests: len(requests.writes) >= 3
        )  # the Lease is taken and renewed
        stop.set()
    assert {each.path.rpartition("/")[2] for each in server.requests.writes} <= {"leases", "lock"}
