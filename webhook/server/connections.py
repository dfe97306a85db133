"""Connections that slow or greedy clients cannot hold, and that end without losing a request."""

import asyncio
import logging
from typing import Any, Never

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from webhook.server.metrics import Metrics

KEEP_ALIVE_SECONDS = 120.0  # the API server gives up an idle connection after 90 s; we must never be first
REQUEST_SECONDS = 10.0  # for the TLS handshake, for a request from first to last byte, and for taking the answer
LINGER_SECONDS = 1.0  # how long the rest of a refused body is read and dropped, so that the refusal arrives
GOODBYE_SECONDS = 1.0
MOST_CONNECTIONS = 1000  # about 45 kB each

log = logging.getLogger("gatewright.webhook")


class Connection(RequestHandler):
    """One client's connection; what the client has to do next, it has to do by `due`."""

    __slots__ = ("due", "limits", "used")

    def __init__(self, limits: "Connections") -> None:
        super().__init__(
            limits,
            loop=asyncio.get_running_loop(),
            keepalive_timeout=KEEP_ALIVE_SECONDS,
            lingering_time=LINGER_SECONDS,
            access_log=None,  # type: ignore[arg-type]  # a log line costs as much as a review
            auto_decompress=False,
        )
        self.limits = limits
        self.due: float | None = None
        self.used = False

    def data_received(self, data: bytes) -> None:
        """Start the clock of a request with its first byte."""
        if self.due is None and not self._request_in_progress:
            self.due = self._loop.time() + self.limits.request_seconds
        super().data_received(data)

    def request_received(self) -> None:
        """Stop the clock: the request is here as a whole, the time until the answer is ours."""
        self.due = None

    async def finish_response(
        self, request: web.BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        """Send the answer, within the time a client may take to read it; while draining it is the last one."""
        self.due = self._loop.time() + self.limits.request_seconds
        if self.limits.draining:
            resp.force_close()
        try:
            return await super().finish_response(request, resp, start_time)
        finally:
            self.due = None
            self.used = True

    def handle_error(
        self, request: web.BaseRequest, status: int = 500, exc: BaseException | None = None, message: str | None = None
    ) -> web.StreamResponse:
        """Answer what is no HTTP request, or an error of ours, in one line and close the connection."""
        if status == 500:
            log.error("error while answering a request", exc_info=exc)
        text = "internal error" if status == 500 else "not an HTTP/1.1 request that can be answered"
        answer = web.Response(status=status, text=f"{text}\n")
        answer.force_close()
        return answer

    @property
    def is_unused(self) -> bool:
        """Whether it has never made a request and makes none now."""
        return not self.used and self.due is None and not self._request_in_progress

    def cut(self, reason: str) -> None:
        """End the connection without a word."""
        self.limits.metrics.connections_cut.labels(reason).inc()
        if self.transport is not None:
            self.transport.abort()


class Connections(web.Server):
    """All open connections: at most so many, none waited for longer than agreed."""

    def __init__(
        self,
        handler: Any,
        metrics: Metrics,
        *,
        most: int = MOST_CONNECTIONS,
        request_seconds: float = REQUEST_SECONDS,
    ) -> None:
        super().__init__(handler)
        self.metrics = metrics
        self.most = most
        self.request_seconds = request_seconds
        self.draining = False
        self.open: dict[Connection, asyncio.Transport] = {}  # the oldest first
        self.none_open = asyncio.Event()
        self.none_open.set()

    def __call__(self) -> Connection:
        """Make the protocol of a new connection."""
        return Connection(self)

    def connection_made(self, handler: RequestHandler, transport: asyncio.Transport) -> None:
        """Admit a connection; beyond the limit the oldest that never asked for anything goes, or else the new one."""
        assert isinstance(handler, Connection)
        super().connection_made(handler, transport)
        self.open[handler] = transport
        self.none_open.clear()
        self.metrics.connections.set(len(self.open))
        if len(self.open) > self.most:
            next((each for each in self.open if each.is_unused), handler).cut("too-many")

    def connection_lost(self, handler: RequestHandler, exc: BaseException | None = None) -> None:
        """Forget a connection."""
        assert isinstance(handler, Connection)
        super().connection_lost(handler, exc)
        self.open.pop(handler, None)
        self.metrics.connections.set(len(self.open))
        if not self.open:
            self.none_open.set()

    async def close(self) -> None:
        """End what is still open: politely, and after a moment without further ado."""
        await self.shutdown(GOODBYE_SECONDS)
        try:
            async with asyncio.timeout(GOODBYE_SECONDS):
                await self.none_open.wait()
        except TimeoutError:
            for transport in self.open.values():
                transport.abort()
            await self.none_open.wait()

    async def sweep(self) -> Never:
        """Cut the connections of clients that are too slow, for ever."""
        while True:
            await asyncio.sleep(self.request_seconds / 10)
            now = asyncio.get_running_loop().time()
            for connection in [each for each in self.open if each.due is not None and each.due < now]:
                connection.cut("too-slow")
