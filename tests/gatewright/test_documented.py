"""The examples of docs/controllers.md behave as the page describes."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from config import crds
from config.api.widget import Widget
from config.settings import Settings
from gatewright import testing
from gatewright.runtime import Manager, Resource
from gatewright.testing.fake_apiserver import FakeApiServer
from tests.gatewright.documented import PAGE, blocks, executed
from tests.waiting import WITHIN

DEPLOYMENT = Resource("apps", "v1", "deployments", "Deployment")
CONFIGMAP = Resource("", "v1", "configmaps", "ConfigMap")


class Cluster:
    """A fake API server with the controllers of a code block."""

    def __init__(self, server: FakeApiServer) -> None:
        self.server = server
        self._changed = asyncio.Event()
        server.storage.listeners.append(lambda _: self._changed.set())

    def create(self, resource: Resource, name: str, **fields: Any) -> dict[str, Any]:
        """Create an object as a user would."""
        return self.server.create(
            resource, {"metadata": {"name": name, "namespace": "default"}, **fields}
        )

    async def until(
        self, resource: Resource, name: str, holds: Callable[[Any], bool]
    ) -> dict[str, Any]:
        """Wait until an object has the expected fields."""
        while not holds(found := self.server.get(resource, name, "default")):
            self._changed.clear()
            await self._changed.wait()
        assert found is not None
        return found


@asynccontextmanager
async def cluster(
    setup: Callable[[Manager], object], *definitions: dict[str, Any]
) -> AsyncIterator[Cluster]:
    """Run the controllers until the end of the block."""
    stop = asyncio.Event()
    async with FakeApiServer() as server, asyncio.timeout(WITHIN), asyncio.TaskGroup() as group:
        for definition in definitions:
            server.define(definition)
        runtime = Manager(server.endpoint, CollectorRegistry(), identity="the-test")
        setup(runtime)
        group.create_task(runtime.run(stop))
        try:
            yield Cluster(server)
        finally:
            stop.set()


async def test_the_planned_kind_creates_a_configmap() -> None:
    """Gear: created, ready, and restored after a manual edit."""
    gear = executed(blocks()["Gear"])
    kind = gear["GEAR"]
    async with cluster(
        lambda runtime: runtime.add_kind(kind), crds.definition(gear["Gear"])
    ) as toys:
        toys.create(kind.resource, "small", spec={"teeth": 8})
        await toys.until(
            kind.resource, "small", lambda each: "conditions" in each.get("status", {})
        )
        toys.server.change(CONFIGMAP, "small", {"data": {"teeth": "none"}}, "default")
        await toys.until(CONFIGMAP, "small", lambda each: each["data"] == {"teeth": "8"})


@pytest.mark.long
async def test_tenants_cost_no_write_until_something_changes() -> None:
    """A namespace with its contents each; a foreign subject goes, and an update without effect is no write."""
    tenants = executed(blocks()["TenantNamespace"])
    kind, number = tenants["TENANT_NAMESPACE"], 20
    binding, quota = tenants["BINDING"], tenants["QUOTA"]
    names = [f"team-{index}" for index in range(number)]
    async with testing.ApiServer(kind) as server:

        async def reconcile_all() -> int:
            """Return the number of writes."""
            before = len(server.writes)
            for name in names:
                await testing.reconcile(kind, server, name)
            return len(server.writes) - before

        for name in names:
            metadata = {"name": name}
            server.create(kind.resource, {"metadata": metadata, "spec": {"editors": [name]}})
        assert await reconcile_all() == number * 4  # three children and a status
        for name in names:
            server.change(kind.resource, name, {"metadata": {"annotations": {"a": "b"}}})
        assert await reconcile_all() == 0
        mallory = {"kind": "User", "name": "mallory", "apiGroup": tenants["RBAC"]}
        server.change(binding, "editors", {"subjects": [mallory]}, names[0])
        server.delete(quota, "tenant", names[1])
        assert await reconcile_all() > 0
        assert await reconcile_all() == 0
        (subject,) = (server.get(binding, "editors", names[0]) or {})["subjects"]
        assert subject["name"] == names[0]
        assert server.get(quota, "tenant", names[1]) is not None


async def test_the_hand_written_controller_creates_a_deployment() -> None:
    """It creates, watches and corrects it; a Deployment with another owner is not changed."""
    widgets = executed(blocks()["Widgets"])
    widget = widgets["WIDGET"]
    async with cluster(widgets["setup"], crds.definition(Widget)) as toys:
        theirs = toys.create(DEPLOYMENT, "taken", spec={"replicas": 7})
        toys.create(widget, "taken", spec={"replicas": 1})
        toys.create(widget, "cogs", spec={"replicas": 2})
        await toys.until(
            widget, "cogs", lambda each: each.get("status", {}).get("availableReplicas") == 0
        )
        toys.server.change(
            DEPLOYMENT, "cogs", {"status": {"availableReplicas": 2}}, "default", "status"
        )
        await toys.until(widget, "cogs", lambda each: each["status"]["availableReplicas"] == 2)
        toys.server.change(widget, "cogs", {"spec": {"replicas": 3}}, "default")
        made = await toys.until(DEPLOYMENT, "cogs", lambda each: each["spec"]["replicas"] == 3)
        assert made["spec"]["template"]["spec"] == widgets["POD"]
        assert made["metadata"]["ownerReferences"][0]["kind"] == "Widget"
        assert toys.server.get(DEPLOYMENT, "taken", "default") == theirs


async def test_the_logger_logs_each_deployment(caplog: pytest.LogCaptureFixture) -> None:
    """It writes one line for each, with name and replicas."""
    logger = executed(blocks()["Logs"])
    said = asyncio.Queue[dict[str, Any]]()
    hears = logging.Handler()
    hears.emit = lambda record: said.put_nowait({"message": record.getMessage(), **record.fields})  # type: ignore[attr-defined, method-assign]
    caplog.set_level(logging.INFO, "deployments")
    logger["LOG"].addHandler(hears)
    async with cluster(logger["setup"]) as toys:
        toys.create(DEPLOYMENT, "shop", spec={"replicas": 3})
        assert await said.get() == {
            "message": "saw deployment",
            "name": "default/shop",
            "replicas": 3,
        }
    logger["LOG"].removeHandler(hears)


async def test_the_pages_tests_pass() -> None:
    """Each test of the page runs with the blocks before it."""
    names = {**executed(blocks()["Gear"]), **executed(blocks()["Widgets"]), **vars(testing)}
    tests = executed(blocks()["tests"], **names)
    for name in ("test_a_gear_is_made", "test_a_widget_is_made"):
        await tests[name]()


def test_the_page_has_the_default_number_of_workers() -> None:
    """It is the default of `--workers`, for all controllers."""
    assert f"for one of them; default: {Settings().workers} |" in PAGE.read_text()


def test_examples_are_short() -> None:
    """It has at most forty lines of code, with imports and without empty lines."""
    for name in ("Gear", "Widgets", "Logs"):
        assert len([line for line in blocks()[name].splitlines() if line.strip()]) <= 40, name
