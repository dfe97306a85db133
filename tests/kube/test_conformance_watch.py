"""The watch API as Gatewright's client relies on it, tested on the fake and on a real API server."""

import asyncio
from typing import Any

import orjson
import pytest

from gatewright.testing.fake_apiserver import FakeApiServer
from kube.client import METADATA, Client
from kube.errors import Gone
from kube.resource import target
from tests.kube.conftest import CONFIG_MAP, GIZMO, Api
from tests.waiting import WITHIN

LABELLED = {"labelSelector": "app=x"}


def version(object: dict[str, Any]) -> int:
    """Return the resourceVersion of an object."""
    return int(object["metadata"]["resourceVersion"])


async def test_a_watch_continues_from_a_version(api: Api) -> None:
    """It sends all events after that version, in order, and none before."""
    await api.gizmo("before")
    first = await api.gizmo("one")
    await api.client.patch(GIZMO, "one", {"spec": {"size": 2}}, api.namespace)
    async with api.watch(GIZMO, resourceVersion=first["metadata"]["resourceVersion"]) as events:
        kind, changed = await anext(events)
        assert (kind, changed["spec"]["size"]) == ("MODIFIED", 2)
        await api.gizmo("two")
        assert (await anext(events))[0] == "ADDED"
        await api.client.delete(GIZMO, "one", api.namespace)
        kind, deleted = await anext(events)
    assert (kind, deleted["metadata"]["name"]) == ("DELETED", "one")
    assert version(deleted) > version(changed) > version(first)


async def test_objects_come_and_go_with_their_labels(api: Api) -> None:
    """In a watch with a selector, an object that stops matching is DELETED, and one that begins to match is ADDED."""
    created = await api.config_map("one", labels={"app": "x"})
    async with api.watch(
        CONFIG_MAP, resourceVersion=created["metadata"]["resourceVersion"], **LABELLED
    ) as events:
        moved = await api.client.patch(
            CONFIG_MAP, "one", {"metadata": {"labels": {"app": "y"}}}, api.namespace
        )
        kind, left = await anext(events)
        assert (kind, version(left)) == ("DELETED", version(moved))
        await api.client.patch(
            CONFIG_MAP, "one", {"metadata": {"labels": {"app": "x"}}}, api.namespace
        )
        assert (await anext(events))[0] == "ADDED"


async def test_a_quiet_watch_sends_a_bookmark(api: Api) -> None:
    """Shortly before its timeout, a watch sends a bookmark, even without events."""
    created = await api.config_map("one", labels={"app": "x"})
    query = {"resourceVersion": created["metadata"]["resourceVersion"], "timeoutSeconds": "5"}
    async with api.watch(CONFIG_MAP, **query, **LABELLED) as events:
        await api.config_map(
            "another", labels={"app": "y"}
        )  # a real server must have seen something at all
        kind, bookmark = await anext(events)
    assert kind == "BOOKMARK"
    assert version(bookmark) >= version(created)


async def test_a_watch_ends_in_time(api: Api) -> None:
    """The server ends a watch when the client wants it to."""
    created = await api.gizmo("one")
    query = {"resourceVersion": created["metadata"]["resourceVersion"], "timeoutSeconds": "1"}
    async with api.watch(GIZMO, **query) as events:
        assert [kind async for kind, _ in events if kind != "BOOKMARK"] == []


async def test_a_watch_from_the_future_is_silent(api: Api) -> None:
    """A version that the server has not reached gives no error and no event."""
    await api.gizmo("one")
    async with api.watch(GIZMO, resourceVersion="99999999999", timeoutSeconds="1") as events:
        assert [event async for event in events] == []


async def test_metadata_alone_can_be_watched(api: Api) -> None:
    """With the right Accept header, events and bookmarks have only metadata."""
    created = await api.config_map("one", {"a": "hunter2"})
    query = {
        "watch": "true",
        "allowWatchBookmarks": "true",
        "timeoutSeconds": "5",
        "fieldSelector": "metadata.name=one",
        "resourceVersion": created["metadata"]["resourceVersion"],
    }
    opened = api.client.lines(target(CONFIG_MAP.path(api.namespace), query), METADATA)
    lines: list[bytes] = []
    async with asyncio.timeout(WITHIN), opened as stream:
        await api.client.patch(CONFIG_MAP, "one", {"data": {"a": "hunter3"}}, api.namespace)
        while len(lines) < 2:
            lines += await anext(stream)
    modified, bookmark = (orjson.loads(line) for line in lines)
    assert [each["type"] for each in (modified, bookmark)] == ["MODIFIED", "BOOKMARK"]
    for event in (modified, bookmark):
        assert event["object"]["kind"] == "PartialObjectMetadata"
        assert set(event["object"]) == {"apiVersion", "kind", "metadata"}


async def test_metadata_alone_can_be_listed(api: Api) -> None:
    """A list of metadata has no data either."""
    await api.config_map("one", {"a": "hunter2"})
    pages = [page async for page in api.client.pages(CONFIG_MAP, api.namespace, metadata_only=True)]
    found = [item for page in pages for item in page if item["metadata"]["name"] == "one"]
    assert [set(item) for item in found] == [{"apiVersion", "kind", "metadata"}]


async def test_a_continue_token_gets_too_old() -> None:
    """After a compaction, a list cannot be continued (the real server compacts after five minutes)."""
    async with FakeApiServer() as server, Client(server.endpoint) as client:
        for name in ("one", "two"):
            server.create(CONFIG_MAP, {"metadata": {"name": name, "namespace": "default"}})
        pages = client.pages(CONFIG_MAP, limit=1)
        await anext(pages)
        server.create(CONFIG_MAP, {"metadata": {"name": "three", "namespace": "default"}})
        server.storage.compact()
        with pytest.raises(Gone):
            await anext(pages)
