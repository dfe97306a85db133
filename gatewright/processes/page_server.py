"""Serve a few small pages over HTTP, on aiohttp's server in a thread with its own event loop.

A page is computed on the event loop of the process, so that nothing changes meanwhile. While that
loop is busy, the server repeats the last response of the page, so that one long request does not
make the kubelet restart every replica.
"""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import NamedTuple

# Not from aiohttp.web, which imports applications and routers.
from aiohttp.web_protocol import RequestHandler
from aiohttp.web_request import BaseRequest
from aiohttp.web_response import Response
from aiohttp.web_server import Server

from gatewright.processes.second_loop import log, run_on, second_loop

Address = tuple[str | None, int]  # host None: every interface

# Seconds to wait for the event loop of the process; probes wait 4.
PAGE_TIMEOUT = 1.0
# Seconds for which the last answer is repeated: probes come every 20 s, and three failures restart
# a process.
MAX_AGE = 60.0
# Seconds from opening a connection to the last byte of its answer.
WHOLE_REQUEST = 10.0
# With more connections, the oldest one is closed, so that a new request is always answered.
MAX_CONNECTIONS = 64


class ListenError(OSError):
    """The server cannot listen on an address."""


class PageResponse(NamedTuple):
    """The response of a page."""

    body: bytes
    status: HTTPStatus = HTTPStatus.OK
    content_type: str = "text/plain; charset=utf-8"

    @classmethod
    def line(cls, status: HTTPStatus, text: str) -> "PageResponse":
        """Return a response with one line of text."""
        return cls(f"{text}\n".encode(), status)


# The part of the work that reads no mutable state; it runs in a thread.
Later = Callable[[], PageResponse]
# Takes the Accept header, and runs on the event loop of the process.
Page = Callable[[str], PageResponse | Later]
Pages = Mapping[str, Page]  # by path


@asynccontextmanager
async def serve_pages(
    sites: Sequence[tuple[Address, Pages]], *, page_timeout: float = PAGE_TIMEOUT
) -> AsyncIterator[Sequence[Address]]:
    """Serve pages at addresses until the context exits.

    Yields the addresses in use, which differ from the requested ones if the requested port is 0.
    Raises ListenError if an address is not available.
    """
    home = asyncio.get_running_loop()
    servers: list[_PageServer] = []
    with second_loop() as second:
        try:
            for address, pages in sites:
                servers.append(_PageServer(pages, home, second, page_timeout))
                await run_on(second, servers[-1].listen(address))
            yield [
                (host, server.port) for ((host, _), _), server in zip(sites, servers, strict=True)
            ]
        finally:
            for server in servers:
                await run_on(second, server.close())


class _PageServer(Server):
    """aiohttp's server with limits on the number and duration of connections."""

    def __init__(
        self,
        pages: Pages,
        home: asyncio.AbstractEventLoop,
        second: asyncio.AbstractEventLoop,
        page_timeout: float,
    ) -> None:
        super().__init__(self._handle, loop=second, logger=log, access_log=None)
        self._pages = pages
        self._home = home
        self._timeout = page_timeout
        self._last: dict[str, tuple[PageResponse, float]] = {}  # with the time of the answer
        self._listener: asyncio.Server | None = None

    async def listen(self, address: Address) -> None:
        host, port = address
        try:
            self._listener = await self._loop.create_server(self, host, port)
        except OSError as error:
            # Python 3.13 repeats the number: "error while …: [errno 98] address already in use".
            reason = re.sub(r".*: |\[errno \d+\] ", "", str(error.strerror or error))
            raise ListenError(
                f"cannot listen on {host or '*'}:{port}: {reason}; "
                "choose another address with --metrics-listen or --health-listen"
            ) from error

    @property
    def port(self) -> int:
        assert self._listener is not None
        port: int = self._listener.sockets[0].getsockname()[1]
        return port

    async def close(self) -> None:
        if self._listener is not None:
            self._listener.close()
        self.pre_shutdown()
        await self.shutdown(self._timeout)

    def connection_made(self, handler: RequestHandler, transport: asyncio.Transport) -> None:
        """Close the connection after its time limit, and the oldest one if there are too many."""
        super().connection_made(handler, transport)
        self._loop.call_later(WHOLE_REQUEST, transport.abort)
        if len(self._connections) > MAX_CONNECTIONS:
            next(iter(self._connections.values())).abort()

    async def _handle(self, request: BaseRequest) -> Response:
        page = self._pages.get(request.path)
        allow = {}
        if page is None:
            answer = PageResponse.line(
                HTTPStatus.NOT_FOUND, "not found; pages: " + ", ".join(self._pages)
            )
        elif request.method not in ("GET", "HEAD"):
            answer = PageResponse.line(HTTPStatus.METHOD_NOT_ALLOWED, "GET only")
            allow = {"Allow": "GET, HEAD"}
        else:
            answer = await self._answer(request.path, page, request.headers.get("Accept", ""))
        headers = {"Content-Type": answer.content_type, "Server": "gatewright", **allow}
        response = Response(body=answer.body, status=answer.status, headers=headers)
        response.force_close()
        return response

    async def _answer(self, path: str, page: Page, accept: str) -> PageResponse:
        """Return a page's answer; if the loop of the process is busy, its last answer or 503."""

        async def call() -> PageResponse | Later:
            return page(accept)

        try:
            async with asyncio.timeout(self._timeout):
                answer = await run_on(self._home, call())
        except TimeoutError:
            last, at = self._last.get(path, (None, 0.0))
            if last is not None and time.monotonic() - at < MAX_AGE:
                return last
            waited = f"the event loop has not answered for {self._timeout:g} s"
            return PageResponse.line(HTTPStatus.SERVICE_UNAVAILABLE, waited)
        if not isinstance(answer, PageResponse):
            return await asyncio.to_thread(answer)
        self._last[path] = answer, time.monotonic()
        return answer
