"""The bytes of registries' answers in memory, bounded over all reads."""

import asyncio
from collections import Counter
from typing import Any

MAX_IN_FLIGHT = 32 * 1024 * 1024


class TooManyBytesError(Exception):
    """Answers in memory exceed their limit, and this read has more than its share."""


class BytesInFlight:
    """Counts the bytes of each read, which is a task.

    Beyond the limit, a read that holds more than an equal share fails, and smaller ones go on: so
    at most twice the limit is in memory, and large answers do not stop the look-ups of others.
    """

    def __init__(self, limit: int = MAX_IN_FLIGHT) -> None:
        """Take the limit, in bytes."""
        self._limit = limit
        self._held = Counter[asyncio.Task[Any] | None]()

    @property
    def total(self) -> int:
        """The bytes of all reads."""
        return self._held.total()

    def add(self, size: int) -> None:
        """Count bytes of the current task. Raises TooManyBytesError."""
        task = asyncio.current_task()
        held = self._held[task] + size
        readers = len(self._held.keys() | {task})
        if self.total + size > self._limit and held > self._limit / readers:
            raise TooManyBytesError
        self._held[task] = held

    def release(self, size: int) -> None:
        """Give bytes of the current task back."""
        task = asyncio.current_task()
        self._held[task] -= size
        if not self._held[task]:
            del self._held[task]
