"""How long a key waits after a failure."""

import random
from collections.abc import Callable, Hashable

FIRST = 1.0
LONGEST = 300.0
JITTER = 1.0
CONFLICT_FIRST = 0.005
CONFLICT_RETRIES = 5


class Backoff:
    """Per key 1, 2, 4 … seconds up to five minutes, plus up to a second of jitter; the counts live in memory."""

    def __init__(self, *, uniform: Callable[[float, float], float] = random.uniform) -> None:
        self._uniform = uniform
        self._failures: dict[Hashable, int] = {}

    def failed(self, key: Hashable, *, conflict: bool = False) -> float:
        """Count a failure and return the seconds to wait; the first few conflicts wait milliseconds only."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        if conflict and failures < CONFLICT_RETRIES:
            return CONFLICT_FIRST * 2.0**failures * self._uniform(1.0, 2.0)
        return min(FIRST * 2.0 ** min(failures, 32), LONGEST) + self._uniform(0.0, JITTER)

    def forget(self, key: Hashable) -> None:
        """Start again from the first wait: the key went well, or is gone."""
        self._failures.pop(key, None)
