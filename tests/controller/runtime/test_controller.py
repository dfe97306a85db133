"""Hand-written controllers without planned kinds, as in controller-runtime."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

import controller.runtime.controller
import controller.runtime.expectations
import controller.runtime.manager
import controller.runtime.workqueue
from controller.runtime.controller import Controller
from controller.runtime.expectations import Expectations
from controller.runtime.manager import Manager
from controller.runtime.sources import itself
from controller.runtime.types import ReconcileRequest, Result, TerminalError
from gatewright.testing.fake_apiserver import FakeApiServer
from kube.errors import Conflict
from kube.store import Change
from tests.controller.runtime.conftest import CONFIGMAP, NAMESPACE
from tests.waiting import WITHIN

ONE = ReconcileRequest(NAMESPACE, "one")


@asynccontextmanager
async def running(
    server: FakeApiServer,
    reconcile: Callable[[ReconcileRequest], Awaitable[Result]],
    *,
    primary: bool = True,
    **options: Any,
) -> AsyncIterator[Manager]:
    """A process with one controller that reconciles the ConfigMap `one`."""
    manager = Manager(server.endpoint, CollectorRegistry(), identity="the-test")
    controller = Controller("test", reconcile=reconcile, metrics=manager.metrics, **options)
    controller.watch(manager.caches.one(CONFIGMAP, "one", NAMESPACE), itself, primary=primary)
    manager.add(controller)
    stop = asyncio.Event()
    async with asyncio.timeout(WITHIN), asyncio.TaskGroup() as group:
        group.create_task(manager.run(stop))
        try:
            yield manager
        finally:
            stop.set()


def configmap(server: FakeApiServer, name: str = "one") -> None:
    """Create a ConfigMap."""
    server.create(CONFIGMAP, {"metadata": {"name": name, "namespace": NAMESPACE}})


async def test_a_single_named_object_is_watched(server: FakeApiServer) -> None:
    """Others of its kind and namespace neither fill memory nor wake anybody."""
    looked: asyncio.Queue[ReconcileRequest] = asyncio.Queue()

    async def reconcile(request: ReconcileRequest) -> Result:
        looked.put_nowait(request)
        return Result()

    async with running(server, reconcile) as manager:
        configmap(server, "other")
        configmap(server)
        assert await looked.get() == ONE
        assert list(manager.caches.one(CONFIGMAP, "one", NAMESPACE)) == [ONE.key]
        server.delete(CONFIGMAP, "one", NAMESPACE)
        assert await looked.get() == ONE


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize(
    "error", [Conflict(409, "Conflict", "again"), ValueError("a bug"), TimeoutError()]
)
async def test_a_reconcile_that_raises_is_retried(server: FakeApiServer, error: Exception) -> None:
    """One bad object, or an error in the code, ends neither the worker nor the process."""
    attempts, mended = 0, asyncio.Event()

    async def reconcile(request: ReconcileRequest) -> Result:
        nonlocal attempts
        attempts += 1
        if attempts == 1:
            raise error
        mended.set()
        return Result()

    async with running(server, reconcile, workers=1) as manager:
        configmap(server)
        await mended.wait()
    assert counted(manager, "errors") == 1
    assert counted(manager, "panics") == (1 if isinstance(error, ValueError) else 0)
    assert counted(manager, "timeouts") == 0


def counted(manager: Manager, what: str) -> float | None:
    """How often something happened to the controller's reconciles."""
    name = f"controller_runtime_reconcile_{what}_total"
    return manager.metrics.registry.get_sample_value(name, {"controller": "test"})


async def test_a_terminal_error_waits_for_a_change(server: FakeApiServer) -> None:
    """It is not retried; a change of the object resets it."""
    attempts: asyncio.Queue[int] = asyncio.Queue()

    async def reconcile(request: ReconcileRequest) -> Result:
        attempts.put_nowait(1)
        raise TerminalError("never")

    async with running(server, reconcile) as manager:
        configmap(server)
        await attempts.get()
        (controller,) = manager.controllers
        assert controller.queue._entries == {}
        server.change(CONFIGMAP, "one", {"data": {"a": "b"}}, NAMESPACE)
        await attempts.get()


@pytest.mark.usefixtures("hasty")
async def test_a_task_that_dies_takes_the_process_along(server: FakeApiServer) -> None:
    """An exception outside of a reconcile, such as in an event handler, ends the process."""

    async def reconcile(request: ReconcileRequest) -> Result:
        return Result()

    def mistaken(change: Change) -> None:
        raise ValueError(change.key)

    async def until_it_dies() -> None:
        async with running(server, reconcile) as manager:
            manager.caches.one(CONFIGMAP, "one", NAMESPACE).subscribe(mistaken)
            configmap(server)
            await asyncio.Event().wait()

    with pytest.raises(ExceptionGroup) as raised:
        await until_it_dies()
    mistakes, others = raised.value.split(ValueError)
    assert (mistakes is not None, others) == (True, None)


async def test_a_reconcile_that_takes_too_long_is_ended(
    server: FakeApiServer, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A timeout is an error, and is counted separately."""
    monkeypatch.setattr(controller.runtime.workqueue, "FIRST_DELAY", 0.01)
    monkeypatch.setattr(controller.runtime.workqueue, "MAX_JITTER", 0.0)
    caplog.set_level(logging.WARNING, "gatewright.controller")
    ended, attempts = asyncio.Event(), 0

    async def reconcile(request: ReconcileRequest) -> Result:
        nonlocal attempts
        attempts += 1
        if attempts == 1:
            await asyncio.Event().wait()
        ended.set()
        return Result()

    async with running(server, reconcile, timeout=0.01) as manager:
        configmap(server)
        await ended.wait()
    assert [counted(manager, what) for what in ("timeouts", "errors", "panics")] == [1, 1, 0]
    assert [vars(each)["fields"]["error"] for each in caplog.records] == ["not done within 0.01 s"]


async def test_a_result_asks_for_another_look(server: FakeApiServer) -> None:
    """The object is reconciled after the requested time, without any change."""
    looks: asyncio.Queue[int] = asyncio.Queue()

    async def reconcile(request: ReconcileRequest) -> Result:
        looks.put_nowait(1)
        return Result(requeue_after=timedelta(milliseconds=1))

    async with running(server, reconcile):
        configmap(server)
        for _ in range(3):
            await looks.get()


async def test_a_requeue_has_back_off_until_it_is_not_asked_for(
    server: FakeApiServer, hasty: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a failure, 1, 2, 4 … times the first delay, but it is no error."""
    monkeypatch.setattr(controller.runtime.workqueue, "MAX_JITTER", 0.0)
    at, ended = list[float](), asyncio.Event()

    async def reconcile(request: ReconcileRequest) -> Result:
        at.append(time.monotonic())
        if len(at) < 4:
            return Result(requeue=True)
        ended.set()
        return Result()

    async with running(server, reconcile) as manager:
        configmap(server)
        await ended.wait()
    pauses = [after - before for before, after in pairwise(at)]
    assert all(pause >= least for pause, least in zip(pauses, (0.01, 0.02, 0.04), strict=True))
    results = {"controller": "test", "result": "requeue"}
    total = manager.metrics.registry.get_sample_value("controller_runtime_reconcile_total", results)
    assert (total, counted(manager, "errors")) == (3, 0)


async def test_all_is_looked_at_again_now_and_then(
    server: FakeApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The periodic pass reads the cache, and sends no request."""
    looks: asyncio.Queue[int] = asyncio.Queue()

    async def reconcile(request: ReconcileRequest) -> Result:
        looks.put_nowait(1)
        return Result()

    monkeypatch.setattr(controller.runtime.controller, "RESYNC_PERIOD", 0.01)
    async with running(server, reconcile):
        configmap(server)
        await looks.get()
        server.requests.clear()
        await looks.get()
        await looks.get()
        assert server.requests.log == []


async def test_a_reconcile_waits_for_the_cache_to_see_what_was_written(
    server: FakeApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is woken by the very event it waits for."""
    monkeypatch.setattr(controller.runtime.expectations, "PATIENCE", 60.0)
    expectations, observed = Expectations(), asyncio.Queue[int]()

    async def reconcile(request: ReconcileRequest) -> Result:
        entry = manager.caches.one(CONFIGMAP, "one", NAMESPACE).entry(request.key)
        observed.put_nowait(entry.resource_version if entry else 0)
        return Result()

    async with running(server, reconcile, expectations=expectations) as manager:
        await manager.caches.wait_synced()
        next_but_one = server.storage.version + 2
        answer = {"metadata": {"resourceVersion": str(next_but_one)}}
        expectations.wrote(ONE, manager.caches.one(CONFIGMAP, "one", NAMESPACE), ONE.key, answer)
        manager.controllers[0].add(ONE)
        configmap(server)
        server.change(CONFIGMAP, "one", {"data": {"a": "b"}}, NAMESPACE)
        assert await observed.get() == next_but_one


async def test_a_stopped_process_waits_for_its_workers(server: FakeApiServer) -> None:
    """A process that is stopped waits for its workers."""
    begun, finished = asyncio.Event(), asyncio.Event()

    async def reconcile(request: ReconcileRequest) -> Result:
        begun.set()
        await manager.client.create(
            CONFIGMAP, {"metadata": {"name": "made", "namespace": NAMESPACE}}
        )
        finished.set()
        return Result()

    async with running(server, reconcile) as manager:
        configmap(server)
        await begun.wait()
    assert finished.is_set()
    assert server.get(CONFIGMAP, "made", NAMESPACE)


async def test_a_hanging_reconcile_is_cancelled_at_the_end(
    server: FakeApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reconcile that hangs does not keep the process from ending."""
    monkeypatch.setattr(controller.runtime.manager, "SHUTDOWN_TIMEOUT", 0.05)
    begun, cancelled = asyncio.Event(), asyncio.Event()

    async def reconcile(request: ReconcileRequest) -> Result:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        return Result()

    async with running(server, reconcile):
        configmap(server)
        await begun.wait()
    assert cancelled.is_set()
