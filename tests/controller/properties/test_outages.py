"""An API server that is down, silent, overloaded or forbids requests: retries back off, and nothing is lost."""

import asyncio
import logging
import time
from collections import Counter
from urllib.parse import urlsplit

import pytest
from prometheus_client import CollectorRegistry

import controller.runtime.workqueue
import kube.watch
from controller.runtime.health import MAX_SILENCE, unready
from controller.runtime.manager import Manager
from controller.runtime.types import ReconcileRequest
from controller.runtime.workqueue import LOW, NORMAL
from gatewright.testing.fake_apiserver import FakeApiServer
from kube.client import Client
from kube.endpoint import Endpoint
from kube.store import Store
from kube.watch import Watch
from tests.controller.runtime.conftest import CONFIGMAP, NAMESPACE, Running, Things, kind_of
from tests.controller.runtime.test_reconciler import single
from tests.fakes.proxy import Proxy
from tests.kube.conftest import type_of

pytestmark = pytest.mark.long


@pytest.mark.parametrize(("outage", "most"), [(1, 2), (10, 5), (60, 18)])
async def test_an_absent_server_gets_few_requests_and_is_found_soon(
    server: FakeApiServer, outage: float, most: int
) -> None:
    """Within a minute, it gets 0.3 requests per second.

    Five seconds after its return the cache is current, with deletions.
    """
    now = 0.0
    answers: list[int] = []
    for name in ("kept", "deleted"):
        server.create(CONFIGMAP, {"metadata": {"name": name, "namespace": NAMESPACE}})

    async def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds
        if now >= outage > now - seconds:
            await server.start()

    client = Client(server.endpoint, on_response=lambda method, code: answers.append(code))
    async with client, asyncio.timeout(20), asyncio.TaskGroup() as group:
        store = Store(CONFIGMAP)
        watch = Watch(
            client,
            CONFIGMAP,
            store,
            monotonic=lambda: now,
            uniform=lambda low, high: low,
            sleep=sleep,
        )
        changes: asyncio.Queue[tuple[str, str]] = asyncio.Queue()
        store.subscribers.append(lambda change: changes.put_nowait((type_of(change), change.key)))
        following = group.create_task(watch.run())
        await store.synced.wait()
        server.create(CONFIGMAP, {"metadata": {"name": "watched", "namespace": NAMESPACE}})
        told = [await changes.get() for _ in range(3)]
        await server.requests.until(
            lambda requests: any(each.code == 200 for each in requests.watches)
        )
        await server.stop()
        server.delete(CONFIGMAP, "deleted", NAMESPACE)
        server.create(CONFIGMAP, {"metadata": {"name": "new", "namespace": NAMESPACE}})
        server.storage.compact()
        told += [await changes.get(), await changes.get()]
        unanswered = answers.count(0)
        following.cancel()
    assert sorted(told[3:]) == [("added", "default/new"), ("deleted", "default/deleted")]
    assert sorted(store.keys()) == ["default/kept", "default/new", "default/watched"]
    assert unanswered <= most
    assert now <= outage + 5


async def test_a_relist_has_a_lower_priority_than_changes(running: Running) -> None:
    """After a 410, all objects are listed again: unchanged ones enqueue nothing, changed ones have low priority."""
    async with running(single) as things:
        for number in range(20):
            things.create(f"thing-{number}")
        for number in range(20):
            await things.until_ready(name=f"thing-{number}")
        await things.until_quiet()
        things.server.requests.clear()
        woken: list[tuple[str, float]] = []
        queue = things.manager.controllers[0].queue
        add = queue.add

        def noted(key: ReconcileRequest, *, priority: float = NORMAL, after: float = 0.0) -> None:
            woken.append((key.name, priority))
            add(key, priority=priority, after=after)

        queue.add = noted  # type: ignore[method-assign]
        for watcher in things.server.watches.open:
            watcher.silent = True
        things.server.delete(CONFIGMAP, "thing-3", NAMESPACE)
        things.server.expire_watches()
        await things.server.requests.until(
            lambda requests: (
                sum(each.method == "GET" and not each.watch for each in requests.log) > 2
            )
        )
        await things.until(CONFIGMAP, "thing-3")
        await things.until_quiet()
        written = [each for each in things.writes() if "marker" not in each]
    assert ("thing-3", LOW) in woken
    assert {name for name, _ in woken if "marker" not in name} == {"thing-3"}
    assert written[:1] == ["PATCH configmaps/thing-3"]


@pytest.mark.usefixtures("hasty")
async def test_nothing_is_lost_while_the_server_is_away(running: Running) -> None:
    """Started work and new objects are completed when the server is back."""
    async with running(single) as things:
        for number in range(20):
            things.create(f"before-{number}")
        await things.server.requests.until(lambda requests: len(requests.writes) > 5)
        await things.server.stop()
        for number in range(20):
            things.create(f"meanwhile-{number}")
            things.server.change(
                things.resource, f"before-{number}", {"spec": {"size": 7}}, NAMESPACE
            )
        await things.server.start()
        for number in range(20):
            await things.until(
                CONFIGMAP, f"before-{number}", lambda each: bool(each["data"] == {"size": "7"})
            )
            await things.until_ready(name=f"meanwhile-{number}")


@pytest.mark.usefixtures("hasty")
async def test_connections_that_break_or_fall_silent(
    server: FakeApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both are detected, the silent ones by missing bookmarks and responses; work continues."""
    assert Client.__init__.__kwdefaults__ is not None
    assert kube.watch.BOOKMARK_LIMIT + Client.__init__.__kwdefaults__["timeout"] <= 120
    monkeypatch.setitem(Client.__init__.__kwdefaults__, "timeout", 0.3)
    monkeypatch.setattr(kube.watch, "BOOKMARK_LIMIT", 0.3)
    target = urlsplit(server.url)
    async with Proxy(target.hostname or "", target.port or 0) as proxy:
        manager = Manager(
            Endpoint(f"http://127.0.0.1:{proxy.port}"), CollectorRegistry(), identity="the-test"
        )
        kind = kind_of(single)
        manager.add_kind(kind)
        stop = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(manager.run(stop))
            await manager.caches.wait_synced()
            things = Things(server, manager, kind)
            for name, fault in (
                ("first", proxy.silence),
                ("second", proxy.cut),
                ("third", proxy.silence),
            ):
                fault()
                things.create(name)
                await things.until_ready(name=name)
            stop.set()


@pytest.mark.parametrize("code", [429, 503])
async def test_a_server_that_asks_for_patience_gets_it(
    running: Running, caplog: pytest.LogCaptureFixture, code: int
) -> None:
    """A write with a Retry-After of seven seconds is retried after seven seconds."""
    caplog.set_level(logging.WARNING, "gatewright.controller")
    async with running(single) as things:
        things.server.fail(1, code, method="PATCH", path="/configmaps/", retry_after="7")
        things.create()
        await things.until_ready("False")
        await things.until_quiet()
        written = things.writes()
    fields = [vars(each)["fields"] for each in caplog.records]
    (waits,) = [each["retry_seconds"] for each in fields if "retry_seconds" in each]
    assert waits == 7
    assert written.count("PATCH configmaps/thing") == 1


async def test_an_overloaded_server_meets_no_storm(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each key fails once and waits; no key is delayed by another's failure."""
    monkeypatch.setattr(controller.runtime.workqueue, "FIRST_DELAY", 0.1)
    monkeypatch.setattr(controller.runtime.workqueue, "MAX_JITTER", 0.1)
    names = [f"thing-{number:02}" for number in range(30)]
    async with running(single) as things:
        for name in names:
            things.server.fail(1, 503, method="PATCH", path=f"/configmaps/{name}")
            things.create(name)
        for name in names:
            await things.until_ready(name=name)
        written = Counter(things.writes())
    assert {written[f"PATCH configmaps/{name}"] for name in names} == {2}
    assert {written[f"PATCH things/{name}/status"] for name in names} == {2}


@pytest.mark.usefixtures("hasty")
async def test_a_right_that_is_lost_concerns_one_resource(running: Running) -> None:
    """Its watch retries, and other work continues.

    Readiness reports the resource and the reason until the right is restored.
    """
    async with running(single) as things:
        things.create("before")
        await things.until_ready(name="before")
        things.server.fail(10**6, 403, path="/configmaps", watch=True)
        things.server.close_watches()
        await things.server.requests.until(
            lambda log: sum(each.code == 403 for each in log.watches) >= 3
        )
        things.create("after")
        await things.until_ready(name="after")
        heard = [
            watch.last_heard or 0.0 for watch in things.manager.caches.of(things.resource).watches
        ]
        # a moment less: the sum may be rounded up
        now = min(heard) + MAX_SILENCE - 1e-6
        fault = unready(things.manager.caches, clock=lambda: now) or ""
        things.server.requests.faults.clear()
        await things.server.requests.until(lambda log: log.watches[-1].code == 200)
        await things.until_quiet()
        assert things.manager.unready() is None
        assert time.monotonic() > min(heard)
    assert fault.startswith("configmaps: nothing heard for ")
    assert "403 Forbidden: a fault of the test: 403" in fault
    assert "things" not in fault
