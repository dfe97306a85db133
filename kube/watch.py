"""The list-and-watch loop that keeps a Store equal to the API server, through every failure of server and network."""

import asyncio
import logging
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Never

import orjson

from kube.backoff import Backoff
from kube.changes import Change, Changes
from kube.client import Client, selectors
from kube.errors import ApiError, BadRequest, Gone, Invalid, NotFound, ServerError, Unreachable, error_for
from kube.resource import Resource
from kube.store import Object, Store
from kube.transport import Lines

LOG = logging.getLogger("gatewright.kube.watch")

WATCH_SECONDS = (290, 580)  # timeoutSeconds of a watch; random, so that not all end at once
UNMARKED_SECONDS = (65, 75)  # the same without bookmarks, where the proper end is the only sign of life
BOOKMARK_LIMIT = 80.0  # the API server sends a bookmark each minute: a connection silent for longer is dead
LISTING_LIMIT = 30.0  # a server silent for so long amid the initial events does not support watch-list
SHORT_WATCH = 1.0  # a watch that ends sooner without an event is a failure
SILENT_WATCH = 60.0  # a watch that ends after so long without even a bookmark proves nothing: list again,
RELIST_INTERVAL = 300.0  # but no sooner than so long after the last list: not every resource has bookmarks
BATCH = 100  # objects handled before other tasks have their turn
PAGE = 500
INITIAL_EVENTS_END = "k8s.io/initial-events-end"
EVENTS = frozenset({"ADDED", "MODIFIED", "DELETED", "BOOKMARK"})


class Watch:
    """Follows one resource (in one namespace or all, by selectors) and notifies subscribers of each change."""

    def __init__(
        self,
        client: Client,
        resource: Resource,
        store: Store,
        *,
        namespace: str | None = None,
        labels: str | None = None,
        fields: str | None = None,
        metadata_only: bool = False,
        monotonic: Callable[[], float] = time.monotonic,
        uniform: Callable[[float, float], float] = random.uniform,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.resource = resource
        self.store = store
        self.last_heard: float | None = None
        """When (monotonic seconds) the server last sent something, bookmarks included."""
        self.problem: str | None = None
        """Why the watch fails at present; None while it works."""
        self._client = client
        self._namespace = namespace
        self._labels = labels
        self._fields = fields
        self._metadata_only = metadata_only
        self._monotonic = monotonic
        self._uniform = uniform
        self._sleep = sleep
        self._changes = Changes(store)
        self._version = ""  # where to go on from; "" is the beginning
        self._watch_list = True
        self._listed_at = 0.0
        self._bookmarks = True  # not after a silence, until one comes
        self._page = PAGE

    def subscribe(self, callback: Callable[[Change], None]) -> None:
        """Call `callback` with each change, once the store has it."""
        self._changes.subscribers.append(callback)

    def subscribe_served(self, callback: Callable[[], None]) -> None:
        """Call `callback` when the API server begins to serve the resource, or ceases to."""
        self._changes.on_served.append(callback)

    def relist(self) -> None:
        """List everything again when `run` is called next: what is known may be out of date."""
        self._version = ""

    async def run(self) -> Never:
        """Follow the server until cancelled; retry failures with back-off."""
        backoff = Backoff(self._monotonic, self._uniform)
        while True:
            try:
                try:
                    await self._follow()
                except NotFound:
                    await self._confirm_absence()
                    raise
            except ApiError as error:
                if isinstance(error, Gone | NotFound):
                    self._version = ""
                delay = backoff.after(error)
                self._fail(error, delay)
                await self._sleep(delay)

    async def _confirm_absence(self) -> None:
        """Empty the store if discovery says that the resource is gone; a 404 alone may come from a load balancer."""
        is_known = self.store.known.is_set() and self.store.absent
        if not is_known and not await self._client.serves(self.resource):
            self._changes.vanished()

    async def _follow(self) -> None:
        """List if nothing is known, then watch until the stream ends."""
        if self._version:
            await self._watch()
        elif self._bookmarks and self._watch_list and self._client.watch_list:
            self._changes.begin_listing()
            try:
                await self._watch()
            except (Invalid, BadRequest):
                self._client.watch_list = False
        else:
            self._changes.begin_listing()
            await self._list()

    async def _list(self) -> None:
        version = ""
        pages = self._client.pages(
            self.resource,
            self._namespace,
            labels=self._labels,
            fields=self._fields,
            limit=self._page,
            metadata_only=self._metadata_only,
        )
        try:
            async for page in pages:
                self._hear()
                for number, object in enumerate(page["items"], start=1):
                    self._changes.put(object)
                    if number % BATCH == 0:
                        await asyncio.sleep(0)
                version = page["metadata"]["resourceVersion"]
        except Gone:
            self._page = 0  # the next attempt reads everything at once
            raise
        self._page = PAGE
        self._end_listing(version)

    async def _watch(self) -> None:
        """Follow one stream to its end; while listing it begins with everything that exists."""
        seconds = int(self._uniform(*(WATCH_SECONDS if self._bookmarks else UNMARKED_SECONDS)))
        query = selectors(self._labels, self._fields)
        query |= {"watch": "true", "allowWatchBookmarks": "true", "timeoutSeconds": str(seconds)}
        if self._changes.listing:
            query |= {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        else:
            query |= {"resourceVersion": self._version}
        started, heard, happened = self._monotonic(), False, False
        async with self._client.stream(
            self.resource, self._namespace, query, metadata_only=self._metadata_only
        ) as stream:
            self._hear()
            while lines := await self._next(stream):
                self._hear()
                heard = True
                for number, line in enumerate(lines, start=1):
                    happened |= self._take(*event_in(line))
                    if number % BATCH == 0:
                        await asyncio.sleep(0)
        lasted = self._monotonic() - started
        if self._changes.listing:
            raise ServerError(200, "Incomplete", "the watch ended amid the initial events")
        if not happened and lasted < SHORT_WATCH:
            raise ServerError(200, "ClosedAtOnce", "the watch ended as soon as it began")
        if not heard and lasted >= SILENT_WATCH and self._monotonic() - self._listed_at >= RELIST_INTERVAL:
            self._version = ""

    async def _next(self, stream: AsyncIterator[Lines]) -> Lines | None:
        """Return the next lines of a stream, or None at its end; Unreachable if it is silent for too long.

        After a silence the state comes from a list, which is answered or known not to be, however many connections are
        dead. Without bookmarks that happens once.
        """
        limit = LISTING_LIMIT if self._changes.listing else BOOKMARK_LIMIT
        try:
            async with asyncio.timeout(limit):
                return await anext(stream, None)
        except TimeoutError:
            if self._changes.listing:
                self._watch_list = False
            else:
                self._version, self._bookmarks = "", False
            raise Unreachable(f"the watch was silent for {limit:g} s") from None

    def _end_listing(self, version: str) -> None:
        self._changes.end_listing(version)
        self._version, self._listed_at = version, self._monotonic()

    def _take(self, kind: str, object: Object) -> bool:
        """Take one event; say whether something happened, beyond listing what exists."""
        changes, metadata = self._changes, object["metadata"]
        version, is_listed = metadata["resourceVersion"], changes.listing
        if not is_listed:
            changes.reached(version)  # before subscribers are notified
        if kind == "DELETED":
            changes.remove(object)
        elif kind != "BOOKMARK":
            changes.put(object)
        elif not is_listed:
            self._bookmarks = True
        elif INITIAL_EVENTS_END in (metadata.get("annotations") or {}):
            self._end_listing(version)
        if is_listed:
            return False
        self._version = version
        return kind != "BOOKMARK"

    def _hear(self) -> None:
        self.last_heard = self._monotonic()
        if self.problem is not None:
            LOG.info("watching %s again", self.resource.plural, extra={"fields": {"resource": self.resource.plural}})
            self.problem = None

    def _fail(self, error: ApiError, delay: float) -> None:
        if self.problem != str(error):
            fields = {"resource": self.resource.plural, "error": str(error), "retry_seconds": round(delay, 1)}
            LOG.warning("cannot watch %s: %s", self.resource.plural, error, extra={"fields": fields})
        self.problem = str(error)


def event_in(line: bytes) -> tuple[str, Object]:
    """Return the type and the object of a watch event; raise what an ERROR event, or something else, means."""
    try:
        event = orjson.loads(line)
        kind, object = event["type"], event["object"]
        if isinstance(object, dict):
            if kind in EVENTS and "metadata" in object:
                return kind, object
            if kind == "ERROR":
                raise error_for(int(object.get("code") or 500), object)
    except (ValueError, TypeError, KeyError):
        pass
    raise ServerError(200, "NotAnEvent", "a line of the watch is not an event")
