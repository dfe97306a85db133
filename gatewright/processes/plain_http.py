"""A plain HTTP server for a few small pages, in a thread with its own event loop.

A page is computed on the event loop of the process, so that nothing changes while it is read. While
that loop is busy, the server repeats the page's last answer, so that one client's request does not
make the kubelet restart every replica.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager
from http import HTTPStatus
from threading import Thread
from typing import Any, NamedTuple, TypeVar

Address = tuple[str | None, int]  # host None: every interface
T = TypeVar("T")

PAGE_TIMEOUT = 1.0  # seconds to wait for the loop of the process; probes wait 4
# seconds for which the last answer is repeated: probes come every 20 s, and three failures restart
# a process
MAX_AGE = 60.0
WHOLE_REQUEST = 10.0  # seconds from opening a connection to the last byte of its answer
MAX_CONNECTIONS = 64  # the oldest is closed, so that a new request is always answered
MAX_HEAD = 16 * 1024

log = logging.getLogger("gatewright.processes.listeners")


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


Later = Callable[
    [], PageResponse
]  # the part of the work that reads nothing mutable: runs in a thread
Page = Callable[
    [str], PageResponse | Later
]  # takes the Accept header; runs on the loop of the process
Pages = Mapping[str, Page]  # by path


@asynccontextmanager
async def served(
    sites: Sequence[tuple[Address, Pages]], *, page_timeout: float = PAGE_TIMEOUT
) -> AsyncIterator[Sequence[Address]]:
    """Serve pages at addresses while the context lasts.

    Raises ListenError where an address is not available.

    Yields the addresses in use, which differ from the requested ones where the requested port is 0.
    """
    home = asyncio.get_running_loop()
    with _loop_beside() as beside:
        servers: list[asyncio.Server] = []
        try:
            for address, pages in sites:
                server = _Server(pages, home, page_timeout)
                servers.append(await _on(beside, server.listen(address)))
            yield [
                (host, server.sockets[0].getsockname()[1])
                for ((host, _), _), server in zip(sites, servers, strict=True)
            ]
        finally:
            for each in servers:
                beside.call_soon_threadsafe(each.close)


@contextmanager
def _loop_beside() -> Iterator[asyncio.AbstractEventLoop]:
    """Run an event loop in its own thread; cancel its remaining tasks at the end."""
    loop = asyncio.new_event_loop()

    def turn() -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.get_loop().run_forever()

    thread = Thread(target=turn, name="listeners", daemon=True)
    thread.start()
    try:
        yield loop
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()


async def _on(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on another loop and return its result."""
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, loop))


class _Server:
    """Answers requests for some pages, one per connection."""

    def __init__(self, pages: Pages, home: asyncio.AbstractEventLoop, page_timeout: float) -> None:
        self._pages = pages
        self._home = home
        self._timeout = page_timeout
        self._last: dict[Page, tuple[PageResponse, float]] = {}  # with the time of the answer
        self._open: dict[asyncio.WriteTransport, None] = {}  # the oldest first

    async def listen(self, address: Address) -> asyncio.Server:
        host, port = address
        try:
            return await asyncio.start_server(self._connected, host, port, limit=MAX_HEAD)
        except OSError as error:
            reason = str(error.strerror or error).rpartition(": ")[2]
            choose = "choose another address with --metrics-listen or --health-listen"
            raise ListenError(
                f"cannot listen on {host or '*'}:{port}: {reason}; {choose}"
            ) from error

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        transport = writer.transport
        self._open[transport] = None
        if len(self._open) > MAX_CONNECTIONS:
            next(iter(self._open)).abort()
        try:
            transport.set_write_buffer_limits(
                high=0
            )  # write everything before the connection is closed
            async with asyncio.timeout(WHOLE_REQUEST):
                head = await reader.readuntil(b"\r\n\r\n")
                writer.write(await self._answered(head.decode("latin-1")))
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # the client left, or sent too much
        finally:
            del self._open[transport]
            transport.abort()

    async def _answered(self, head: str) -> bytes:
        """Return the whole response to a request."""
        first, *lines = head.splitlines()
        method, _, rest = first.partition(" ")
        target, _, version = rest.rpartition(" ")
        page = self._pages.get(target.partition("?")[0])
        more = ""
        if not version.startswith("HTTP/1."):
            answer = PageResponse.line(HTTPStatus.BAD_REQUEST, "not HTTP/1.1")
        elif page is None:
            answer = PageResponse.line(
                HTTPStatus.NOT_FOUND, "not found; pages: " + ", ".join(self._pages)
            )
        elif method not in ("GET", "HEAD"):
            answer, more = (
                PageResponse.line(HTTPStatus.METHOD_NOT_ALLOWED, "GET only"),
                "Allow: GET, HEAD\r\n",
            )
        else:
            fields = (line.partition(":") for line in lines)
            accept = next(
                (value.strip() for name, _, value in fields if name.lower() == "accept"), ""
            )
            answer = await self._asked(page, accept)
        response = (
            f"HTTP/1.1 {answer.status.value} {answer.status.phrase}\r\n"
            f"Content-Type: {answer.content_type}\r\nContent-Length: {len(answer.body)}\r\n{more}"
            "Connection: close\r\n\r\n"
        ).encode()
        return response if method == "HEAD" else response + answer.body

    async def _asked(self, page: Page, accept: str) -> PageResponse:
        """Return a page's answer; if the loop of the process is busy, its last answer or 503."""

        async def call() -> PageResponse | Later:
            return page(accept)

        asking: Future[PageResponse | Later] = asyncio.run_coroutine_threadsafe(call(), self._home)
        answered = asyncio.wrap_future(asking)
        if not (await asyncio.wait([answered], timeout=self._timeout))[0]:
            answered.cancel()
            last, at = self._last.get(page, (None, 0.0))
            if last is not None and time.monotonic() - at < MAX_AGE:
                return last
            waited = f"the event loop has not answered for {self._timeout:g} s"
            return PageResponse.line(HTTPStatus.SERVICE_UNAVAILABLE, waited)
        whole = asyncio.create_task(_whole(answered))
        await asyncio.wait([whole])
        if error := whole.exception():
            log.error("page failed: %s", error, exc_info=error)
            return PageResponse.line(
                HTTPStatus.INTERNAL_SERVER_ERROR, "internal error; the log has the traceback"
            )
        if isinstance(answered.result(), PageResponse):
            self._last[page] = whole.result(), time.monotonic()
        return whole.result()


async def _whole(answered: asyncio.Future[PageResponse | Later]) -> PageResponse:
    result = await answered
    return result if isinstance(result, PageResponse) else await asyncio.to_thread(result)
