"""The health report of a controller process."""

import asyncio

import pytest
from prometheus_client import CollectorRegistry

from controller.runtime.health import unready
from controller.runtime.manager import Manager
from gatewright.testing.fake_apiserver import FakeApiServer
from tests.controller.runtime.conftest import CONFIGMAP, SECRET
from tests.controller.runtime.test_leader import Clock
from tests.waiting import WITHIN


@pytest.fixture
def manager(server: FakeApiServer) -> Manager:
    """A process that watches two resources and writes nothing."""
    manager = Manager(server.endpoint, CollectorRegistry(), identity="the-test")
    manager.caches.of(CONFIGMAP)
    manager.caches.of(SECRET)
    return manager


async def test_readiness_names_each_cache_that_is_not_synced(manager: Manager) -> None:
    """Readiness names each unsynced cache by its resource."""
    assert manager.unready() == "configmaps: not synced; secrets: not synced"


async def test_a_synced_process_is_ready(manager: Manager) -> None:
    """Leadership does not matter; a long silence of the API server is reported."""
    stop = asyncio.Event()
    async with asyncio.timeout(WITHIN), asyncio.TaskGroup() as group:
        group.create_task(manager.run(stop))
        await manager.caches.wait_synced()
        assert manager.unready() is None
        heard = [watch.last_heard for cache in manager.caches for watch in cache.watches]
        clock = Clock()
        clock.now = max(each for each in heard if each is not None) + 200
        late = unready(manager.caches, clock=clock)
        stop.set()
    assert late == "configmaps: nothing heard for 200 s; secrets: nothing heard for 200 s"


async def test_a_resource_that_cannot_be_read_is_named_with_the_reason(
    manager: Manager, server: FakeApiServer
) -> None:
    """A missing right is reported immediately, and does not delay other caches."""
    server.fail(1000, 403, path="/configmaps")
    stop = asyncio.Event()
    async with asyncio.timeout(WITHIN), asyncio.TaskGroup() as group:
        group.create_task(manager.run(stop))
        await manager.caches.of(SECRET).wait_synced()
        fault = manager.unready() or ""
        stop.set()
    assert fault.startswith("configmaps: not synced")
    assert "secrets" not in fault
