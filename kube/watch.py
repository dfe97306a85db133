"""The list-and-watch loop that keeps a Store equal to the API server through all failures."""

import asyncio
import logging
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import Never, Unpack

from kube.backoff import Backoff
from kube.client import METADATA, Client, Selection, selector_query
from kube.errors import ApiError, Forbidden, Gone, NotFound, ServerError, TooManyRequests, error_for
from kube.resource import CRD, JsonObject, Resource, definition_of, target
from kube.store import Store
from kube.transport import JSON, Lines, decode

LOG = logging.getLogger("gatewright.kube.watch")

WATCH_SECONDS = (290, 580)  # timeoutSeconds of a watch; random, so that not all end at once
# Without bookmarks, the regular end of a watch is the only proof that it is alive.
UNMARKED_SECONDS = (65, 75)
# The API server sends a bookmark each minute, but only for a kind with an event since the server
# started (or when etcd reports progress). A connection that is silent for longer may be dead.
BOOKMARK_LIMIT = 80.0
SHORT_WATCH = 1.0  # a watch that ends sooner without an event is a failure
# After a watch of this length without a bookmark, the objects are listed again.
SILENT_WATCH = 60.0
# Seconds after the last list before the next one: not every resource has bookmarks.
RELIST_INTERVAL = 300.0
# A watch that ends by its time-out may end this much sooner, by the clocks of two machines.
EARLY = 2.0  # seconds
BATCH = 100  # objects processed before other tasks run
# Errors without a warning, as in client-go: a version expires; a changed CRD gets new storage.
PASSING = (Gone, TooManyRequests)


class Watch:
    """Follows one resource, in one namespace or all, and notifies subscribers of each change."""

    def __init__(
        self,
        client: Client,
        resource: Resource,
        store: Store,
        *,
        namespace: str | None = None,
        optional: bool = False,
        monotonic: Callable[[], float] = time.monotonic,
        uniform: Callable[[float, float], float] = random.uniform,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        **selection: Unpack[Selection],
    ) -> None:
        self.resource = resource
        self.store = store
        self.optional = optional
        """Whether the API server may lack the resource."""
        self.last_heard: float | None = None
        """When (monotonic seconds) the server last sent something, bookmarks included."""
        self.problem: str | None = None
        """The current error of the watch; None while it works."""
        self._client = client
        self._namespace = namespace
        self._selection = selection
        self._monotonic = monotonic
        self._uniform = uniform
        self._sleep = sleep
        self._must_list = True  # otherwise watch from the store's version
        self._listed_at = 0.0
        self._bookmarks = True  # False after a silence, until a bookmark comes
        self._silent = False  # whether the last watch was silent, and no list followed it yet

    async def run(self) -> Never:
        """List everything, and follow the server until cancelled; retry failures with back-off."""
        self._must_list = True
        await self._continue()

    async def _continue(self) -> Never:
        backoff = Backoff(self._monotonic, self._uniform)
        while True:
            try:
                try:
                    await self._follow()
                except NotFound:
                    await self._confirm_absence()
                    raise
                except Forbidden:
                    # A Role in one namespace has no rights on cluster-scoped objects.
                    if self.optional and not self.resource.namespaced:
                        self._must_list = True
                        self.store.remove_all()
                    raise
            except ApiError as error:
                if isinstance(error, Gone | NotFound):
                    self._must_list = True
                delay = backoff.after(error)
                self._fail(error, delay)
                await self._sleep(delay)
                if isinstance(error, NotFound) and self.optional and self.store.absent:
                    await self._await_definition()

    async def _follow(self) -> None:
        if self._silent:
            await self._list_after_silence()
        elif self._must_list:
            await self._list()
        else:
            await self._watch()

    async def _list_after_silence(self) -> None:
        """List everything, which shows whether the watch was dead or there were no changes."""
        before = self._versions()
        await self._list()
        self._silent = False
        if self._versions() != before:
            fields = {"resource": self.resource.plural, "silent_seconds": BOOKMARK_LIMIT}
            LOG.warning(
                "%s changed while the watch was silent; the connection was dead",
                self.resource.plural,
                extra={"fields": fields},
            )

    def _versions(self) -> dict[str, int]:
        return {key: each.resource_version for key, each in self.store.entries().items()}

    async def _confirm_absence(self) -> None:
        """Empty the store if discovery says that the resource is gone.

        A 404 alone may come from a load balancer.
        """
        is_known = self.store.known.is_set() and self.store.absent
        if not is_known and not await self._client.serves(self.resource):
            self.store.remove_all()

    async def _await_definition(self) -> None:
        """Wait until a CRD serves an absent resource, at most for the length of a watch.

        Without the right to see it, return at once: only repeated lists then show its installation.
        """
        is_served = asyncio.Event()
        version = self.resource.version
        definition = Store(CRD, lambda crd: crd if serves(crd, version) else None)
        definition.subscribers.append(lambda _: is_served.set())
        by_name = f"metadata.name={definition_of(self.resource)}"
        watch = Watch(self._client, CRD, definition, fields=by_name)
        try:
            await watch._list()
        except ApiError:
            return
        # After that time, look for an API that no CRD defines, such as that of a newer server.
        with suppress(TimeoutError):
            async with asyncio.timeout(self._uniform(*WATCH_SECONDS)), asyncio.TaskGroup() as group:
                following = group.create_task(watch._continue())
                await is_served.wait()
                following.cancel()

    async def _list(self) -> None:
        version = 0
        self.store.begin_listing()
        try:
            async for page in self._client.pages(self.resource, self._namespace, **self._selection):
                self._hear()
                for number, object in enumerate(page, start=1):
                    self.store.put(require_identity(object))
                    if number % BATCH == 0:
                        await asyncio.sleep(0)
                version = page.version
                del page  # before the next one is in memory
        except Gone:
            self._selection["limit"] = 0  # the next attempt reads everything in one page
            raise
        self._selection.pop("limit", None)
        self.store.end_listing(version)
        self._must_list = False
        self._listed_at = self._monotonic()

    async def _watch(self) -> None:
        """Follow one stream to its end."""
        seconds = int(self._uniform(*(WATCH_SECONDS if self._bookmarks else UNMARKED_SECONDS)))
        started = self._monotonic()
        heard = happened = False
        query = {"watch": "true", "allowWatchBookmarks": "true", "timeoutSeconds": seconds}
        query |= {"resourceVersion": self.store.resource_version, **selector_query(self._selection)}
        accept = METADATA if self._selection.get("metadata_only") else JSON
        path = target(self.resource.path(self._namespace), query)
        async with self._client.lines(path, accept) as stream:
            self._hear()
            while lines := await self._next(stream):
                self._hear()
                heard = True
                for number, line in enumerate(lines, start=1):
                    happened |= self._take(*event_in(line))
                    if number % BATCH == 0:
                        await asyncio.sleep(0)
        lasted = self._monotonic() - started
        if lasted < seconds - EARLY and is_custom(self.resource):
            self._must_list = True  # its CRD may have changed: see `is_custom`
            for notify in self.store.on_new_schema:
                notify()
        if not happened and lasted < SHORT_WATCH:
            raise ServerError(200, "ClosedAtOnce", "the watch ended as soon as it began")
        if (
            not heard
            and lasted >= SILENT_WATCH
            and self._monotonic() - self._listed_at >= RELIST_INTERVAL
        ):
            self._must_list = True

    async def _next(self, stream: AsyncIterator[Lines]) -> Lines | None:
        """Return the next lines of a stream; None at its end, or if it is silent for too long.

        After a silence a list is requested, which is answered or fails by its time-out, however
        many connections are dead. Without bookmarks that happens once.
        """
        try:
            async with asyncio.timeout(BOOKMARK_LIMIT):
                return await anext(stream, None)
        except TimeoutError:
            self._must_list = self._silent = True
            self._bookmarks = False
            return None

    def _take(self, kind: str, object: JsonObject) -> bool:
        """Take one event; return whether an object changed."""
        if kind == "BOOKMARK":
            self.store.resource_version = int(object["metadata"]["resourceVersion"])
            self._bookmarks = True
            return False
        # Before subscribers are notified.
        self.store.resource_version = int(object["metadata"]["resourceVersion"])
        if kind == "DELETED":
            self.store.remove(self.store.key_of(object))
        else:
            self.store.put(object)
        return True

    def _hear(self) -> None:
        self.last_heard = self._monotonic()
        if self.problem is not None:
            LOG.info(
                "watching %s again",
                self.resource.plural,
                extra={"fields": {"resource": self.resource.plural}},
            )
            self.problem = None

    def _fail(self, error: ApiError, delay: float) -> None:
        if self.problem != str(error):
            fields = {
                "resource": self.resource.plural,
                "error": str(error),
                "retry_seconds": round(delay, 1),
            }
            is_passing = isinstance(error, PASSING) or (self.optional and self.store.absent)
            level = logging.INFO if is_passing else logging.WARNING
            message = "cannot watch %s: %s"
            LOG.log(level, message, self.resource.plural, error, extra={"fields": fields})
        self.problem = str(error)


def is_custom(resource: Resource) -> bool:
    """Return whether a CRD may define a resource: only then its group must have a dot.

    The API server ends the watches of a CRD that changes after a second or more. Until then they
    deliver the objects without the fields that the older schema lacks, and what the next watch
    delivers begins after them: so the objects are listed again.
    """
    return "." in resource.group


def serves(definition: JsonObject, version: str) -> bool:
    """Return whether a CustomResourceDefinition serves a version."""
    versions = definition["spec"]["versions"]
    return any(each["name"] == version and each["served"] for each in versions)


def event_in(line: bytes) -> tuple[str, JsonObject]:
    """Return the type and the object of a watch event.

    Raises the error of an ERROR event, or ServerError for an invalid line.
    """
    match decode(line):
        case {"type": "ADDED" | "MODIFIED" | "DELETED" as kind, "object": object}:
            return kind, require_identity(object)
        case {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": str()}} as object}:
            return "BOOKMARK", object
        case {"type": "ERROR", "object": dict() as status}:
            raise error_for(status.get("code", 500), status)
    raise ServerError(200, "NotAnEvent", "a line of the watch is not an event")


def require_identity(object: JsonObject) -> JsonObject:
    """Return an object that has an identity; raises ServerError for anything else."""
    match object:
        case {"metadata": {"name": str(), "uid": str(), "resourceVersion": str()}}:
            return object
    raise ServerError(200, "NotAnObject", "an object has no name, uid or resourceVersion")
