"""The lines of a watch: handed over as they come, without waking a task for each."""

import asyncio
from collections.abc import Callable
from typing import cast

from kube.errors import ApiError

AT_ONCE = 100  # lines that are taken before others have their turn
BURST = 64 * 1024  # bytes after which others have their turn, however few lines they are

Lines = list[bytes]


class Stream:
    """An open watch: `take` gets its lines straight from the connection, and may raise ApiError to end it.

    A line may be of any length; what an ended stream leaves unfinished is dropped.
    """

    def __init__(self, take: Callable[[Lines], None], failure: Callable[[OSError], ApiError]) -> None:
        """`failure` makes what `ended` raises of what went wrong with the connection."""
        self._take = take
        self._failure = failure
        self._loop = asyncio.get_running_loop()
        self._end: asyncio.Future[BaseException | None] = self._loop.create_future()
        self._heard_at = self._loop.time()
        self._transport: asyncio.Transport | None = None
        self._unfinished: list[bytes] = []
        self._lines: Lines = []
        self._resting = False

    def silent(self) -> float:
        """Return for how many seconds no line has come."""
        return self._loop.time() - self._heard_at

    async def ended(self, within: float) -> bool:
        """Wait for the end, but only so many seconds; say whether it came. An end that is not a proper one raises."""
        done, _ = await asyncio.wait([self._end], timeout=within)
        error = self._end.result() if done else None
        if isinstance(error, OSError):
            raise self._failure(error) from error
        if error is not None:
            raise error
        return bool(done)

    def close(self) -> None:
        """Take nothing more, and close the connection."""
        self._stop(None)

    # Called by the connection

    def begin(self, transport: asyncio.Transport) -> None:
        """Expect lines from now on."""
        self._transport = transport
        self._heard_at = self._loop.time()

    def receive(self, data: bytes) -> None:
        """Hand over the lines that are whole now; if there are many, in several turns of the event loop."""
        whole, newline, rest = data.rpartition(b"\n")
        if not newline:
            self._unfinished.append(data)
            return
        self._unfinished.append(whole)
        self._lines += [line for line in b"".join(self._unfinished).split(b"\n") if line]
        self._unfinished = [rest]
        if self._lines and not self._resting:
            self._hand_over()
            if self._lines or len(data) >= BURST:
                self._rest()

    def end(self, error: OSError | None = None) -> None:
        """Take note that no more comes; what has come is handed over first."""
        while self._lines and not self._end.done():
            self._hand_over()
        self._stop(error)

    def _hand_over(self) -> None:
        if self._end.done():
            return
        lines, self._lines = self._lines[:AT_ONCE], self._lines[AT_ONCE:]
        self._heard_at = self._loop.time()
        try:
            self._take(lines)
        except BaseException as error:
            self._stop(error)
            if not isinstance(error, ApiError):
                raise

    def _stop(self, error: BaseException | None) -> None:
        if not self._end.done():
            self._end.set_result(error)
        if self._transport is not None:
            self._transport.abort()

    def _rest(self) -> None:
        """Read nothing more until others have had their turn."""
        self._resting = True
        cast(asyncio.Transport, self._transport).pause_reading()
        self._loop.call_soon(self._go_on)

    def _go_on(self) -> None:
        self._hand_over()
        if self._lines and not self._end.done():
            self._loop.call_soon(self._go_on)
            return
        self._resting = False
        cast(asyncio.Transport, self._transport).resume_reading()
