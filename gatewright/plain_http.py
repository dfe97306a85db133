"""A plain HTTP server for a few small pages, in a thread and an event loop of its own.

A page is computed on the event loop of the process, so that nothing is read while it changes. While that loop is busy
the last answer of a small page holds: the kubelet must not restart every replica because of one client's request.
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

Address = tuple[str | None, int]  # no host: every interface
T = TypeVar("T")

PATIENCE = 1.0  # seconds that the loop of the process has for a page; probes wait 4
STALE = 60.0  # seconds that the last answer holds: probes come every 20, and three failures restart a process
WHOLE_REQUEST = 10.0  # seconds from a connection to the last byte of its answer
MOST_CONNECTIONS = 64  # beyond them the oldest is cut: a request that comes at once is answered whatever others hold
LONGEST_HEAD = 16 * 1024

log = logging.getLogger("gatewright.listeners")


class ListenError(OSError):
    """An address that cannot be listened on."""


class Answer(NamedTuple):
    """What a page says."""

    body: bytes
    status: HTTPStatus = HTTPStatus.OK
    content_type: str = "text/plain; charset=utf-8"

    @classmethod
    def told(cls, status: HTTPStatus, text: str) -> "Answer":
        """Return a line of text."""
        return cls(f"{text}\n".encode(), status)


Later = Callable[[], Answer]  # the rest of the work, which reads nothing that changes: done in a thread
Page = Callable[[str], Answer | Later]  # of the Accept header; runs on the loop of the process
Pages = Mapping[str, Page]  # by their paths


@asynccontextmanager
async def served(
    sites: Sequence[tuple[Address, Pages]], *, patience: float = PATIENCE
) -> AsyncIterator[Sequence[Address]]:
    """Serve pages at addresses while the context lasts; ListenError where one cannot be had.

    Yields the addresses in use, which differ from the wanted ones where the wanted port is 0.
    """
    home = asyncio.get_running_loop()
    with _loop_beside() as beside:
        servers: list[asyncio.Server] = []
        try:
            for address, pages in sites:
                server = _Server(pages, home, patience)
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
    """Run an event loop in a thread of its own; what it still does at the end is cancelled."""
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
    """Return what comes of some work on another loop."""
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, loop))


class _Server:
    """Answers the requests for some pages, one on each connection."""

    def __init__(self, pages: Pages, home: asyncio.AbstractEventLoop, patience: float) -> None:
        self._pages = pages
        self._home = home
        self._patience = patience
        self._last: dict[Page, tuple[Answer, float]] = {}  # with the time of the answer
        self._open: dict[asyncio.WriteTransport, None] = {}  # the oldest first

    async def listen(self, address: Address) -> asyncio.Server:
        host, port = address
        try:
            return await asyncio.start_server(self._connected, host, port, limit=LONGEST_HEAD)
        except OSError as error:
            reason = str(error.strerror or error).rpartition(": ")[2]
            raise ListenError(f"cannot listen on {host or '*'}:{port}: {reason}") from error

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        transport = writer.transport
        self._open[transport] = None
        if len(self._open) > MOST_CONNECTIONS:
            next(iter(self._open)).abort()
        try:
            transport.set_write_buffer_limits(high=0)  # all of it is on its way before the connection is closed
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
        """Return the whole answer to a request."""
        first, *lines = head.splitlines()
        method, _, rest = first.partition(" ")
        target, _, version = rest.rpartition(" ")
        page = self._pages.get(target.partition("?")[0])
        more = ""
        if not version.startswith("HTTP/1."):
            answer = Answer.told(HTTPStatus.BAD_REQUEST, "not HTTP/1.1")
        elif page is None:
            answer = Answer.told(HTTPStatus.NOT_FOUND, "not found; there is " + ", ".join(self._pages))
        elif method not in ("GET", "HEAD"):
            answer, more = Answer.told(HTTPStatus.METHOD_NOT_ALLOWED, "GET only"), "Allow: GET, HEAD\r\n"
        else:
            fields = (line.partition(":") for line in lines)
            accept = next((value.strip() for name, _, value in fields if name.lower() == "accept"), "")
            answer = await self._asked(page, accept)
        told = (
            f"HTTP/1.1 {answer.status.value} {answer.status.phrase}\r\n"
            f"Content-Type: {answer.content_type}\r\nContent-Length: {len(answer.body)}\r\n{more}"
            "Connection: close\r\n\r\n"
        ).encode()
        return told if method == "HEAD" else told + answer.body

    async def _asked(self, page: Page, accept: str) -> Answer:
        """Return what a page says; where the loop of the process has no time, what it said last, or 503."""

        async def said() -> Answer | Later:
            return page(accept)

        asking: Future[Answer | Later] = asyncio.run_coroutine_threadsafe(said(), self._home)
        answered = asyncio.wrap_future(asking)
        if not (await asyncio.wait([answered], timeout=self._patience))[0]:
            answered.cancel()
            last, at = self._last.get(page, (None, 0.0))
            if last is not None and time.monotonic() - at < STALE:
                return last
            waited = f"the event loop has not answered for {self._patience:g} s"
            return Answer.told(HTTPStatus.SERVICE_UNAVAILABLE, waited)
        whole = asyncio.create_task(_whole(answered))
        await asyncio.wait([whole])
        if error := whole.exception():
            log.error("a page failed: %s", error, exc_info=error)
            return Answer.told(HTTPStatus.INTERNAL_SERVER_ERROR, "failed; the log says more")
        if isinstance(answered.result(), Answer):
            self._last[page] = whole.result(), time.monotonic()
        return whole.result()


async def _whole(answered: asyncio.Future[Answer | Later]) -> Answer:
    said = await answered
    return said if isinstance(said, Answer) else await asyncio.to_thread(said)
