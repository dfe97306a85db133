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

    def failed(self, key: Hashable, *, conflict: bool = False, asked: float = 0.0) -> float:
        """Count a failure and return the seconds to wait: our own, or what the server asked for if that is longer.

        The first few conflicts wait milliseconds only; nobody makes us wait for longer than five minutes.
        """
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        brief = CONFLICT_RETRIES if conflict else 0
        if failures < brief:
            wait = CONFLICT_FIRST * 2.0**failures * self._uniform(1.0, 2.0)
        else:
            wait = min(FIRST * 2.0 ** min(failures - brief, 32), LONGEST) + self._uniform(0.0, JITTER)
        return max(wait, min(asked, LONGEST))

    def is_brief(self, key: Hashable) -> bool:
        """Tell whether a conflict would be waited out in milliseconds."""
        return self._failures.get(key, 0) < CONFLICT_RETRIES

    def forget(self, key: Hashable) -> None:
        """Start again from the first wait: the key went well, or is gone."""
        self._failures.pop(key, None)
