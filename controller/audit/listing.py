"""Lists objects from the API server for an audit: page by page, at a bounded rate, and never all of them at once."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

from kube.client import Client
from kube.errors import Gone
from kube.resource import Resource

PAGE = 500  # objects of a request
ATTEMPTS = 3  # at a list whose continue token expires: a list takes minutes in a large cluster

Object = dict[str, Any]


class RateLimit:
    """At most `qps` requests a second, evenly spread: each caller of `wait` gets its turn."""

    def __init__(self, qps: float, now: Callable[[], float], sleep: Callable[[float], Awaitable[None]]) -> None:
        """Take the rate, a clock in seconds, and how to sleep."""
        self._interval, self._now, self._sleep = 1 / qps, now, sleep
        self._next = 0.0

    async def wait(self) -> None:
        """Return when the next request may be sent."""
        turn = max(self._next, self._now())
        self._next = turn + self._interval
        if (delay := turn - self._now()) > 0:
            await self._sleep(delay)


class Lister:
    """Reads collections through one client and one rate limit."""

    def __init__(self, client: Client, limit: RateLimit, namespaces: Sequence[str] = ()) -> None:
        """Take the client, the rate, and the namespaces that are read; none are all of them."""
        self._client, self._limit = client, limit
        self._namespaces = tuple(namespaces)

    async def objects(
        self, resource: Resource, *, metadata_only: bool = False, labels: str | None = None
    ) -> AsyncIterator[Object]:
        """Yield every object of a resource, without managedFields.

        After an expired continue token the list begins again, so that an object can come twice. ApiError where the API
        server refuses.
        """
        for namespace in self._namespaces if resource.namespaced and self._namespaces else (None,):
            for attempt in range(1, ATTEMPTS + 1):
                try:
                    async for each in self._pages(resource, namespace, labels, metadata_only=metadata_only):
                        yield each
                    break
                except Gone:
                    if attempt == ATTEMPTS:
                        raise

    async def _pages(
        self, resource: Resource, namespace: str | None, labels: str | None, *, metadata_only: bool
    ) -> AsyncIterator[Object]:
        await self._limit.wait()
        pages = self._client.pages(resource, namespace, labels=labels, limit=PAGE, metadata_only=metadata_only)
        async for page in pages:
            for item in page["items"]:
                item["metadata"].pop("managedFields", None)
                yield item
            if page["metadata"].get("continue"):
                await self._limit.wait()


def rate_limit(qps: float) -> RateLimit:
    """Return a rate limit by the clock of the running event loop."""
    return RateLimit(qps, asyncio.get_running_loop().time, asyncio.sleep)
