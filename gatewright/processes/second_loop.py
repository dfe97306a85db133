"""A second event loop, in a thread, that works while the loop of the process is busy."""

import asyncio
import errno
import logging
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any, TypeVar

from aiohttp.http_exceptions import HttpProcessingError

T = TypeVar("T")

# Seconds between two log lines while no connection can be accepted.
REPORT_INTERVAL = 60.0
OUT_OF_RESOURCES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)

log = logging.getLogger("gatewright.listeners")
# A client that does not send HTTP gets a 400, without a line in the log.
log.addFilter(
    lambda record: not (record.exc_info and isinstance(record.exc_info[1], HttpProcessingError))
)


@contextmanager
def second_loop() -> Iterator[asyncio.AbstractEventLoop]:
    """Run an event loop in its own thread; cancel its remaining tasks at the end."""
    loop = asyncio.new_event_loop()
    loop.set_exception_handler(_ExceptionHandler())

    def run() -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.get_loop().run_forever()

    thread = Thread(target=run, name="listeners", daemon=True)
    thread.start()
    try:
        yield loop
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()


async def run_on(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on another loop and return its result."""
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, loop))


class _ExceptionHandler:
    """Logs errors that asyncio reports, possibly a hundred times per second."""

    def __init__(self) -> None:
        self._next = 0.0

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if not isinstance(error, OSError) or error.errno not in OUT_OF_RESOURCES:
            loop.default_exception_handler(context)
        elif loop.time() >= self._next:
            self._next = loop.time() + REPORT_INTERVAL
            log.warning("cannot accept connections for metrics and probes: %s", error.strerror)
