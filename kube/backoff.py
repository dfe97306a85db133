"""Back-off of list and watch: exponential with jitter, and the Retry-After of the server."""

from collections import Counter
from collections.abc import Callable

from kube.errors import ApiError, Unreachable

FIRST = 0.8
LONGEST = 30.0
# An unreachable server has no load to reduce, and its return should be noticed soon.
LONGEST_UNREACHABLE = 5.0
LONGEST_ASKED = 60.0
FORGET = 120.0


class Backoff:
    """0.8 s after the first failure, doubled with each further one, with jitter.

    Two minutes without a failure reset it. Each type of error has its own count: a server that was
    unreachable and now answers "not ready" or 410 is back.
    """

    def __init__(
        self, monotonic: Callable[[], float], uniform: Callable[[float, float], float]
    ) -> None:
        self._monotonic = monotonic
        self._uniform = uniform
        self._failures = Counter[type[ApiError]]()
        self._last = float("-inf")

    def after(self, error: ApiError) -> float:
        """Return the seconds to wait after this error: the back-off, or a longer Retry-After."""
        now = self._monotonic()
        if now - self._last > FORGET:
            self._failures.clear()
        self._last = now
        longest = LONGEST_UNREACHABLE if isinstance(error, Unreachable) else LONGEST
        delay = min(longest, FIRST * 2 ** min(self._failures[type(error)], 10))
        self._failures[type(error)] += 1
        return max(self._uniform(0.75 * delay, delay), min(error.retry_after or 0.0, LONGEST_ASKED))
