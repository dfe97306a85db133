"""Open watches: events from a version on, bookmarks, and broken connections."""

import asyncio
from collections.abc import Callable
from typing import Any

import orjson
from aiohttp import web

from gatewright.testing.fake_apiserver.definitions import ServedResource
from gatewright.testing.fake_apiserver.refusals import StatusError
from gatewright.testing.fake_apiserver.selectors import Matches, matcher
from gatewright.testing.fake_apiserver.storage import Storage, StorageEvent
from kube.resource import JsonObject

BOOKMARK_EVERY = 60.0
BOOKMARK_BEFORE_END = 2.0
END = b""
CUT = b'{"type":"ADDED","object":{"metada'  # a line cut off by a broken connection


class Watcher:
    """One open watch, which turns events into lines."""

    def __init__(
        self,
        kind: ServedResource,
        namespace: str,
        chosen: Matches,
        form: Callable[[JsonObject], JsonObject],
    ) -> None:
        self.kind = kind
        self.silent = False
        self.bookmarks = False
        self.lines: asyncio.Queue[bytes] = asyncio.Queue()
        self._namespace = namespace
        self._chosen = chosen
        self._form = form

    def hear(self, event: StorageEvent) -> None:
        """Send an event of this watch.

        Its type is ADDED if an object begins to match, and DELETED if it no longer matches.
        """
        if event.bucket != self.kind.bucket or self.silent:
            return
        before, now = self._matches(event.old), self._matches(event.new)
        if now:
            self.send("MODIFIED" if before and event.new is not None else "ADDED", event.new or {})
        elif before:
            last = (
                event.old
                if event.new is None
                else {**(event.old or {}), "metadata": event.new["metadata"]}
            )
            self.send("DELETED", last or {})

    def _matches(self, object: JsonObject | None) -> bool:
        if object is None or (
            self._namespace and object["metadata"].get("namespace") != self._namespace
        ):
            return False
        return self._chosen(object)

    def send(self, kind: str, object: JsonObject) -> None:
        """Send an event with an object of the watched kind."""
        self.lines.put_nowait(orjson.dumps({"type": kind, "object": self._form(object)}) + b"\n")

    def bookmark(self, version: int) -> None:
        """Send a bookmark: everything up to a version has been sent."""
        if not self.bookmarks or self.silent:
            return
        metadata: JsonObject = {"resourceVersion": str(version), "creationTimestamp": None}
        resource = self.kind.resource
        self.send(
            "BOOKMARK",
            {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": metadata},
        )

    def refuse(self, refusal: StatusError) -> None:
        """End the watch with an error in the stream."""
        self.lines.put_nowait(orjson.dumps({"type": "ERROR", "object": refusal.status}) + b"\n")
        self.lines.put_nowait(END)


class WatchStreams:
    """All open watches on a Storage."""

    def __init__(self, storage: Storage) -> None:
        self.open: list[Watcher] = []
        self.silent = False
        """Whether new watches send nothing, and do not end."""
        self.bookmarks = True
        """Whether bookmarks are sent."""
        self.delay: Callable[[], float] = lambda: 0.0
        """Called before each line; returns a delay in seconds."""
        self.second = 1.0
        """The real seconds per second of a watch's timeout."""
        self._storage = storage

    def start(
        self,
        kind: ServedResource,
        namespace: str,
        query: Any,
        form: Callable[[JsonObject], JsonObject],
    ) -> Watcher:
        """Open a watch, and queue its initial events."""
        chosen = matcher(kind, query.get("labelSelector", ""), query.get("fieldSelector", ""))
        watcher = Watcher(kind, namespace, chosen, form)
        version = query.get("resourceVersion") or ""
        watcher.silent = self.silent or int(version or 0) > self._storage.version
        watcher.bookmarks = query.get("allowWatchBookmarks") == "true"
        if not watcher.silent and version in ("", "0"):
            for _, object in self._storage.all(kind.bucket, namespace):
                if chosen(object):
                    watcher.send("ADDED", object)
        elif not watcher.silent:
            try:
                for event in self._storage.since(int(version), kind.bucket):
                    watcher.hear(event)
            except StatusError as refusal:
                watcher.refuse(refusal)
        self.open.append(watcher)
        self._storage.listeners.append(watcher.hear)
        return watcher

    def stop(self, watcher: Watcher) -> None:
        """Remove an ended watch."""
        self.open.remove(watcher)
        self._storage.listeners.remove(watcher.hear)

    async def serve(
        self, request: web.Request, watcher: Watcher, seconds: float
    ) -> web.StreamResponse:
        """Write the lines of a watch until it ends, times out, or its connection breaks."""
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        bookmarks = asyncio.create_task(self._bookmark(watcher, seconds))
        try:
            await response.prepare(request)
            async with asyncio.timeout(None if self.silent else seconds * self.second):
                while (line := await watcher.lines.get()) not in (END, CUT):
                    if (late := self.delay()) > 0:
                        await asyncio.sleep(late)
                    await response.write(line)
                if line is CUT:
                    await response.write(line)
                    await asyncio.sleep(0)
                    if request.transport:
                        request.transport.abort()
        except TimeoutError:
            pass
        finally:
            bookmarks.cancel()
            self.stop(watcher)
        return response

    async def _bookmark(self, watcher: Watcher, left: float) -> None:
        """Send a bookmark every minute, and shortly before the end."""
        while self.bookmarks and (wait := min(BOOKMARK_EVERY, left - BOOKMARK_BEFORE_END)) > 0:
            await asyncio.sleep(wait * self.second)
            watcher.bookmark(self._storage.version)
            left -= wait
