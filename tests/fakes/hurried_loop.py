"""An event loop that never waits: when idle, its clock jumps to the next timer."""

import asyncio
import selectors
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any, TypeVar, TypeVarTuple

REST = 0.01  # seconds of real time without events, after which nothing is assumed to be in progress

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class HurriedLoop(asyncio.SelectorEventLoop):
    """An event loop in which minutes pass in milliseconds, in `loop.time()` and everything that uses it."""

    def __init__(self) -> None:
        self.ahead = 0.0
        self.elsewhere = 0
        """Calls that are still running in threads, such as a name look-up."""
        super().__init__(_Selector(self))

    def time(self) -> float:
        """Return the real time plus all skipped waiting time."""
        return super().time() + self.ahead

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[*Ts], T], *args: *Ts
    ) -> asyncio.Future[T]:
        """Run a function in a thread, which takes real time."""
        future = super().run_in_executor(executor, func, *args)
        self.elsewhere += 1
        future.add_done_callback(self._came_back)
        return future

    def _came_back(self, future: object) -> None:
        del future
        self.elsewhere -= 1


class _Selector(selectors.DefaultSelector):
    def __init__(self, loop: HurriedLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> Any:
        """Wait for events; skip to the next timer once no event can be pending."""
        if timeout is None or timeout <= REST or self._loop.elsewhere:
            return super().select(timeout)
        if news := super().select(REST):
            return news
        self._loop.ahead += timeout - REST
        return []
