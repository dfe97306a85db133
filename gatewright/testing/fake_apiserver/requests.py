"""The log of all requests, and the faults to inject into the next ones."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self

from aiohttp import web

from gatewright.testing.fake_apiserver.refusals import StatusError


@dataclass
class Logged:
    """One request, and the status code of its response (0 while there is none)."""

    method: str
    path: str
    query: dict[str, str]
    content_type: str
    user_agent: str
    body: Any = None
    code: int = 0

    @property
    def watch(self) -> bool:
        """Whether it is a watch."""
        return self.query.get("watch") == "true"

    @property
    def mutating(self) -> bool:
        """Whether it is a write, and not a dry run."""
        return self.method not in ("GET", "HEAD") and "dryRun" not in self.query


@dataclass
class InjectedFault:
    """An error that the next matching requests get."""

    times: int
    code: int
    method: str | None = None
    path: str = ""
    watch: bool | None = None
    query: str = ""
    retry_after: str | None = None
    garbage: str | None = None
    """The body instead of a Status; of type HTML if it begins with `<`, else JSON."""

    def meets(self, request: Logged) -> bool:
        """Return whether this request gets the fault."""
        return (
            self.times > 0
            and self.method in (None, request.method)
            and self.path in request.path
            and self.watch in (None, request.watch)
            and (not self.query or self.query in request.query)
        )

    def answer(self) -> web.Response:
        """Return the response for one request."""
        self.times -= 1
        headers = {"Retry-After": self.retry_after} if self.retry_after is not None else {}
        if self.garbage is not None:
            kind = "text/html" if self.garbage.startswith("<") else "application/json"
            return web.Response(
                status=self.code, text=self.garbage, content_type=kind, headers=headers
            )
        status = StatusError(self.code, f"a fault of the test: {self.code}").status
        return web.json_response(status, status=self.code, headers=headers)


@dataclass
class Requests:
    """All requests since the start, or since `clear()`."""

    log: list[Logged] = field(default_factory=list)
    faults: list[InjectedFault] = field(default_factory=list)
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    def record(self, request: Logged) -> None:
        """Record a request."""
        self.log.append(request)
        self._wake()

    def record_code(self, request: Logged, code: int) -> None:
        """Record the status code of its response."""
        request.code = code
        self._wake()

    def _wake(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    async def until(self, holds: Callable[[Self], bool], seconds: float = 10.0) -> None:
        """Return as soon as the condition `holds` is true for the requests so far."""
        async with asyncio.timeout(seconds):
            while not holds(self):
                await self._news.wait()

    @property
    def writes(self) -> list[Logged]:
        """The mutating requests."""
        return [request for request in self.log if request.mutating]

    @property
    def watches(self) -> list[Logged]:
        """The requests for watches."""
        return [request for request in self.log if request.watch]

    def clear(self) -> None:
        """Clear the log of requests."""
        self.log.clear()

    def fault(self, request: Logged) -> InjectedFault | None:
        """Return the fault to inject into this request, if any."""
        return next((fault for fault in self.faults if fault.meets(request)), None)
