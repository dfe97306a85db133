"""A time-out for one piece of work after another in a task."""

import asyncio
from types import TracebackType


class TimeLimit:
    """Ends what takes longer than `seconds`, as `asyncio.timeout` does, by a timer that outlasts what is done in time.

    A timer and a context of its own for each piece of work are 2 % of a reconcile that finds all right.
    """

    def __init__(self, seconds: float) -> None:
        self.expired = False
        """Whether the last piece of work took too long."""
        self._seconds = seconds
        self._loop = asyncio.get_running_loop()
        self._until: float | None = None
        self._timer: asyncio.TimerHandle | None = None

    def __enter__(self) -> None:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a time limit is for tasks")
        self._task, self._cancelling = task, task.cancelling()
        self.expired = False
        self._until = self._loop.time() + self._seconds
        if self._timer is None:
            self._timer = self._loop.call_at(self._until, self._look)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._until = None
        if self.expired and self._task.uncancel() <= self._cancelling and kind is asyncio.CancelledError:
            raise TimeoutError from error

    def _look(self) -> None:
        """End the work if it is late; else look again when it would be."""
        self._timer = None
        if self._until is None:
            return
        if self._loop.time() < self._until:
            self._timer = self._loop.call_at(self._until, self._look)
        else:
            self.expired = True
            self._task.cancel()
