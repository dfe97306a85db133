"""How long the API server is left alone."""

from kube.backoff import Backoff
from kube.errors import ServerError, TooManyRequests, Unreachable

BROKEN = ServerError(500, "InternalError", "why")


def test_pauses_double_with_jitter() -> None:
    """Between half and the whole of 0.8 s, 1.6 s …, never more than 30 s."""
    low = Backoff(lambda: 0.0, lambda low, high: low)
    high = Backoff(lambda: 0.0, lambda low, high: high)
    assert [low.after(BROKEN) for _ in range(7)] == [0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 15]
    assert [high.after(BROKEN) for _ in range(7)] == [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30]


def test_the_absent_are_tried_sooner() -> None:
    """A server that is not there is tried at least every 5 s, and less than once in 3 s."""
    backoff = Backoff(lambda: 0.0, lambda low, high: (low + high) / 2)
    pauses = [backoff.after(Unreachable("why")) for _ in range(1000)]
    assert max(pauses) <= 5
    assert len(pauses) / sum(pauses) <= 0.3


def test_two_good_minutes_are_forgiveness() -> None:
    """After two minutes without a failure it begins anew; within them it goes on."""
    now = 0.0
    backoff = Backoff(lambda: now, lambda low, high: high)
    assert [backoff.after(BROKEN), backoff.after(BROKEN)] == [0.8, 1.6]
    now = 120.0
    assert backoff.after(BROKEN) == 3.2
    now = 240.1
    assert backoff.after(BROKEN) == 0.8


def test_the_server_may_ask_for_more() -> None:
    """Its Retry-After counts where it is longer, up to a minute."""
    backoff = Backoff(lambda: 0.0, lambda low, high: high)
    asked = [backoff.after(TooManyRequests(429, "", "", {}, seconds)) for seconds in (0.1, 20, 1e9, float("inf"))]
    assert asked == [0.8, 20, 60, 60]
