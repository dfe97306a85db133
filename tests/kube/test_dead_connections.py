"""Connections that die silently are detected in time, however many there are; time is simulated."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from gatewright.testing.fake_apiserver import FakeApiServer
from kube.client import Client
from kube.store import Store
from kube.watch import Watch
from tests.fakes.hurried_loop import HurriedLoop
from tests.kube.conftest import CONFIG_MAP

pytestmark = pytest.mark.long

WITHIN = 90.0  # seconds
HOUR = 3600.0


class Following:
    """A running Watch, and what it knows."""

    def __init__(self, server: FakeApiServer, store: Store, watch: Watch) -> None:
        self.server = server
        self.store = store
        self.watch = watch
        self._news = asyncio.Event()
        self._numbers = iter(range(1000))
        store.subscribers.append(lambda _: self._news.set())

    def die(self) -> None:
        """Make the open watches silent without ending them."""
        for watcher in self.server.watches.open:
            watcher.silent = True
            watcher.bookmarks = False

    async def until_known(self) -> float:
        """Create an object by another client; return the seconds until the store has it."""
        name, loop = f"object-{next(self._numbers)}", asyncio.get_running_loop()
        began = loop.time()
        self.server.create(CONFIG_MAP, {"metadata": {"name": name, "namespace": "default"}})
        while self.store.entry(f"default/{name}") is None:
            self._news.clear()
            await self._news.wait()
        return loop.time() - began

    def requests(self) -> list[str]:
        """Return the requests since the last call: `list`, or `watch` and for how many seconds."""
        log = self.server.requests.log
        asked = [f"watch {each.query['timeoutSeconds']}" if each.watch else "list" for each in log]
        self.server.requests.clear()
        return asked


@asynccontextmanager
async def following(**watches: Any) -> AsyncIterator[Following]:
    """Run a Watch on a fake API server whose watches are like this."""
    async with (
        FakeApiServer() as server,
        Client(server.endpoint) as client,
        asyncio.TaskGroup() as group,
    ):
        for name, value in watches.items():
            setattr(server.watches, name, value)
        loop, store = asyncio.get_running_loop(), Store(CONFIG_MAP)
        assert isinstance(loop, HurriedLoop)
        watch = Watch(
            client, CONFIG_MAP, store, monotonic=loop.time, uniform=lambda low, high: high
        )
        following = Following(server, store, watch)
        running = group.create_task(watch.run())
        await store.synced.wait()
        yield following
        running.cancel()


async def test_a_change_is_known_in_time_however_many_connections_die() -> None:
    """Each new watch is silent from its first byte on; lists find the missed changes."""
    async with following() as follower:
        assert await follower.until_known() < 1
        follower.die()
        follower.server.watches.silent = True
        assert follower.requests() == ["list", "watch 580"]
        assert [await follower.until_known() <= WITHIN for _ in range(10)] == [True] * 10
        assert follower.requests() == ["list", "watch 75"] * 9 + ["list"]
        follower.server.watches.silent = False
        assert await follower.until_known() <= WITHIN
        assert await follower.until_known() < 1


async def test_a_connection_that_dies_costs_one_list() -> None:
    """After the first bookmark, an hour has no requests except watches of five minutes or more."""
    async with following() as follower:
        await asyncio.sleep(100)
        follower.die()
        assert await follower.until_known() <= WITHIN
        await asyncio.sleep(80)
        assert follower.requests() == ["list", "watch 580", "list", "watch 75", "watch 580"]
        await asyncio.sleep(HOUR)
        assert follower.requests() == ["watch 580"] * 6


async def test_a_resource_without_bookmarks(caplog: pytest.LogCaptureFixture) -> None:
    """It is listed once again; then it is probed every 75 s, relisted every five minutes without events, and recovers.

    A list after each watch would be 48 in an hour; there are twelve.
    """
    caplog.set_level(logging.INFO, "gatewright.kube.watch")
    async with following(bookmarks=False) as follower:
        await asyncio.sleep(100)
        assert follower.requests() == ["list", "watch 580", "list", "watch 75"]
        assert caplog.messages == []
        silences = []
        for _ in range(int(HOUR / 25)):
            await asyncio.sleep(25)
            silences.append(asyncio.get_running_loop().time() - (follower.watch.last_heard or 0.0))
        asked = follower.requests()
        assert (asked.count("watch 75"), asked.count("list"), len(asked)) == (48, 12, 60)
        assert max(silences) <= 80
        assert caplog.messages == []
        assert await follower.until_known() < 1
        follower.server.watches.silent = True
        await asyncio.sleep(75)
        assert [await follower.until_known() <= WITHIN for _ in range(3)] == [True] * 3
    told = "configmaps changed while the watch was silent; the connection was dead"
    assert caplog.messages == [told] * 3


async def test_bookmarks_that_come_are_believed() -> None:
    """After a time without bookmarks, as with other settings of the API server, watches become long again."""
    async with following(bookmarks=False) as follower:
        await asyncio.sleep(500)
        follower.server.watches.bookmarks = True
        await asyncio.sleep(150)
        follower.requests()
        await asyncio.sleep(HOUR)
        assert follower.requests() == ["watch 580"] * 6


@pytest.mark.parametrize(("bookmarks", "within"), [(True, WITHIN), (False, 380)])
async def test_an_api_server_with_an_older_state(bookmarks: bool, within: float) -> None:
    """For a restored API server our version is in the future: its watch is silent, until a list shows its state."""
    async with following(bookmarks=bookmarks) as follower:
        follower.server.storage.version += 1000
        assert await follower.until_known() < 1
        await asyncio.sleep(HOUR)
        follower.server.storage.version -= 1000
        follower.server.cut_watches()
        assert await follower.until_known() <= within
        assert await follower.until_known() < 1
