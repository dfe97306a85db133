"""Back-off: how long the client waits before it sends the next request."""

import pytest

from kube.backoff import Backoff
from kube.errors import Gone, ServerError, TooManyRequests, Unreachable

BROKEN = ServerError(500, "InternalError", "why")


def test_pauses_double_with_jitter() -> None:
    """Pauses are between 75 % and 100 % of 0.8 s, 1.6 s …, never more than 30 s."""
    low = Backoff(lambda: 0.0, lambda low, high: low)
    high = Backoff(lambda: 0.0, lambda low, high: high)
    assert [low.after(BROKEN) for _ in range(7)] == pytest.approx(
        [0.6, 1.2, 2.4, 4.8, 9.6, 19.2, 22.5]
    )
    assert [high.after(BROKEN) for _ in range(7)] == [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30]


def test_the_absent_are_tried_sooner() -> None:
    """A server that is not there is tried at least every 5 s."""
    backoff = Backoff(lambda: 0.0, lambda low, high: high)
    assert max(backoff.after(Unreachable("why")) for _ in range(100)) == 5


@pytest.mark.parametrize(("outage", "most"), [(1, 2), (10, 5), (60, 18)])
def test_an_absent_server_gets_few_requests(outage: float, most: int) -> None:
    """During an outage of 1, 10 or 60 s, each watch sends at most this many requests, whatever the jitter.

    Within a minute, that is 0.3 requests per second, and the server is found again within five seconds.
    """
    now, asked = 0.0, 0
    backoff = Backoff(lambda: now, lambda low, high: low)
    while now < outage:
        asked += 1
        now += backoff.after(Unreachable("why"))
    assert asked <= most
    assert now - outage <= 5


def test_any_response_resets_the_backoff() -> None:
    """After a long outage, the next try comes soon after the first response of any kind."""
    backoff = Backoff(lambda: 0.0, lambda low, high: high)
    for _ in range(20):
        backoff.after(Unreachable("why"))
    assert [backoff.after(error) for error in (BROKEN, Gone(410, "Expired", ""), BROKEN)] == [
        0.8,
        0.8,
        1.6,
    ]


def test_two_good_minutes_are_forgiveness() -> None:
    """Two minutes without a failure reset it; a failure before that continues it."""
    now = 0.0
    backoff = Backoff(lambda: now, lambda low, high: high)
    assert [backoff.after(BROKEN), backoff.after(BROKEN)] == [0.8, 1.6]
    now = 120.0
    assert backoff.after(BROKEN) == 3.2
    now = 240.1
    assert backoff.after(BROKEN) == 0.8


def test_the_server_may_ask_for_more() -> None:
    """Its Retry-After counts if it is longer, up to a minute."""
    backoff = Backoff(lambda: 0.0, lambda low, high: high)
    asked = [
        backoff.after(TooManyRequests(429, "", "", {}, seconds))
        for seconds in (0.1, 20, 1e9, float("inf"))
    ]
    assert asked == [0.8, 20, 60, 60]
