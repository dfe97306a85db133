"""Lists objects of the API server for an audit: page by page, at a bounded rate."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import partial
from typing import TypeVar

from kube.client import Client
from kube.errors import ApiError, Gone, NotFound, TooManyRequests, Unreachable
from kube.page import PAGE
from kube.resource import JsonObject, Resource

ATTEMPTS = 3  # attempts at a request that an overloaded server rejects
RETRY_AFTER = 1.0  # seconds, if the server sends no Retry-After

T = TypeVar("T")


class RateLimit:
    """At most `qps` requests per second, evenly spread."""

    def __init__(self, qps: float) -> None:
        """Take the rate."""
        self._interval = 1 / qps
        self._next = 0.0

    async def send(self, request: Callable[[], Awaitable[T]]) -> T:
        """Send a request in its turn, and retry it if the server is overloaded.

        Raises TooManyRequests after ATTEMPTS.
        """
        for _ in range(ATTEMPTS - 1):
            await self._turn()
            try:
                return await request()
            except TooManyRequests as error:
                await asyncio.sleep(RETRY_AFTER if error.retry_after is None else error.retry_after)
        await self._turn()
        return await request()

    async def _turn(self) -> None:
        """Wait until the next request may be sent."""
        now = time.monotonic()
        turn = max(self._next, now)
        self._next = turn + self._interval
        await asyncio.sleep(turn - now)


class Lister:
    """Reads collections at one rate limit, and remembers which could not be read."""

    def __init__(self, client: Client, limit: RateLimit, namespaces: Sequence[str] = ()) -> None:
        """Take the client, the rate limit, and the namespaces to read; default: all."""
        self.client = client
        self.unread: dict[Resource, ApiError] = {}
        """The resources that could not be listed completely."""
        self._limit, self._namespaces = limit, tuple(namespaces)
        self._versions: frozenset[str] | None = None

    async def has(self, resource: Resource) -> bool:
        """Return whether the API server has a resource's group and version; asks once."""
        if self._versions is None:
            self._versions = await self.client.versions()
        return resource.api_version in self._versions

    async def objects(
        self, resource: Resource, labels: str | None = None
    ) -> AsyncIterator[JsonObject]:
        """Yield every object of a resource.

        None if the API server does not serve the resource. A resource that cannot be listed is
        `unread`. Raises ApiError if discovery fails, or the API server cannot be reached.
        """
        if not await self.has(resource):
            return
        try:
            async for object in self.list(resource, labels=labels):
                yield object
        except NotFound:
            pass  # its CRD is not installed
        except Unreachable:
            raise
        except ApiError as error:
            self.unread[resource] = error

    async def list(
        self, resource: Resource, *, metadata_only: bool = False, labels: str | None = None
    ) -> AsyncIterator[JsonObject]:
        """Yield every object of a resource once, without managedFields.

        If the continue token expires, the list continues with the current state. Raises ApiError if
        the API server rejects the request.
        """
        for namespace in self._namespaces if resource.namespaced and self._namespaces else (None,):
            list_page = partial(
                self.client.page, resource, namespace, labels=labels, metadata_only=metadata_only
            )
            token, limit = "", PAGE
            while True:
                try:
                    page = await self._limit.send(partial(list_page, token=token, limit=limit))
                except Gone as error:
                    if not error.token:
                        raise
                    token = error.token
                    continue
                for item in page:
                    metadata = item.get("metadata") or {}
                    # Without a uid, it is computed by another API server, and never admitted.
                    if metadata.keys() >= {"name", "uid"}:
                        metadata.pop("managedFields", None)
                        yield item
                token, limit = page.token, page.next_limit
                del page  # before the next one is in memory
                if not token:
                    break
