"""How long a key waits after a failure."""

from controller.runtime.backoff import Backoff


def lowest(low: float, high: float) -> float:
    """A chance that always gives the least."""
    del high
    return low


def highest(low: float, high: float) -> float:
    """A chance that always gives the most."""
    del low
    return high


def test_the_wait_doubles_up_to_five_minutes() -> None:
    """1, 2, 4 … seconds, never more than five minutes."""
    backoff = Backoff(uniform=lowest)
    assert [backoff.failed("a") for _ in range(11)] == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]


def test_jitter_adds_up_to_a_second() -> None:
    """Keys that failed together do not come back together."""
    assert Backoff(uniform=highest).failed("a") == 2.0


def test_each_key_has_its_own_count() -> None:
    """One failing object does not slow down another."""
    backoff = Backoff(uniform=lowest)
    backoff.failed("a")
    assert [backoff.failed("a"), backoff.failed("b")] == [2, 1]


def test_a_success_starts_again() -> None:
    """What went well is forgiven its failures."""
    backoff = Backoff(uniform=lowest)
    backoff.failed("a")
    backoff.forget("a")
    assert backoff.failed("a") == 1


def test_the_first_conflicts_wait_milliseconds() -> None:
    """A conflict is worth another try at once, but not for ever: then it waits as long as any other failure."""
    backoff = Backoff(uniform=highest)
    waits = [(backoff.is_brief("a"), backoff.failed("a", conflict=True)) for _ in range(8)]
    assert waits[:5] == [(True, 0.01), (True, 0.02), (True, 0.04), (True, 0.08), (True, 0.16)]
    assert waits[5:] == [(False, 2), (False, 3), (False, 5)]


def test_the_server_may_ask_for_more() -> None:
    """Its Retry-After counts where it is longer, conflict or not, up to five minutes."""
    backoff = Backoff(uniform=lowest)
    assert backoff.failed("a", asked=7) == 7
    assert backoff.failed("a", asked=1) == 2
    assert backoff.failed("a", asked=86_400) == 300
    assert backoff.failed("b", conflict=True, asked=3) == 3
