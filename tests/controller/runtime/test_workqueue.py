"""The work queue: a state machine that compares it with a simple model, and tests of each guarantee."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from controller.runtime.types import RetryableError
from controller.runtime.workqueue import LOW, NORMAL, KeyBackoff, WorkQueue
from kube.errors import Conflict, TooManyRequests
from tests.controller.runtime.clock import Clock
from tests.waiting import WITHIN

KEYS = st.sampled_from("abcde")
ERROR, CONFLICT = TimeoutError(), Conflict(409, "Conflict", "again")


class VirtualTime(asyncio.SelectorEventLoop):
    """An event loop whose time only the test moves."""

    def __init__(self) -> None:
        self.clock = Clock()
        super().__init__()

    def time(self) -> float:
        """The time of its timers."""
        return self.clock()


async def passes(clock: Clock, seconds: float) -> None:
    """Move the clock, and run the timers that are due."""
    clock.now += seconds
    for _ in range(3):
        await asyncio.sleep(0)


@pytest.fixture
def clock() -> Clock:
    """A clock that only the test moves."""
    return Clock()


@pytest.fixture
async def queue(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[WorkQueue[str]]:
    """A queue on that clock."""
    with monkeypatch.context() as context:
        context.setattr(asyncio.get_running_loop(), "time", clock)
        yield WorkQueue(clock=clock)


def taken(queue: WorkQueue[str]) -> str | None:
    """The next key."""
    found = queue.take()
    return found[0] if found else None


class QueueMachine(RuleBasedStateMachine):
    """For any order of add, take and done, the queue agrees with a model of two dictionaries."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = VirtualTime()
        self.clock = self.loop.clock
        self.queue: WorkQueue[str] = WorkQueue(clock=self.clock)
        self.waiting: dict[str, tuple[float, float]] = {}
        self.processing: set[str] = set()

    def teardown(self) -> None:
        """Close the loop."""
        self.loop.close()

    @rule(
        key=KEYS,
        priority=st.sampled_from([LOW, NORMAL]),
        after=st.sampled_from([0.0, 0.5, 1.0, 70.0]),
    )
    def add(self, key: str, priority: float, after: float) -> None:
        """Of several additions the highest priority and the earliest time count."""

        async def add() -> None:
            self.queue.add(key, priority=priority, after=after)

        self.loop.run_until_complete(add())
        old_priority, old_time = self.waiting.get(key, (priority, float("inf")))
        self.waiting[key] = (max(priority, old_priority), min(self.clock.now + after, old_time))

    @rule()
    def take(self) -> None:
        """Take the first ready key that is not being processed, or none."""
        ready = {
            key: at - priority
            for key, (priority, at) in self.waiting.items()
            if at <= self.clock.now and key not in self.processing
        }
        found = self.queue.take()
        if not ready:
            assert found is None
            return
        assert found is not None
        key, waited = found
        assert ready[key] == min(ready.values())
        assert waited == self.clock.now - self.waiting.pop(key)[1]
        self.processing.add(key)

    @precondition(lambda self: self.processing)
    @rule(data=st.data())
    def done(self, data: st.DataObject) -> None:
        """A key that was taken is free again."""
        key = data.draw(st.sampled_from(sorted(self.processing)))
        self.processing.remove(key)

        async def done() -> None:
            self.queue.done(key)

        self.loop.run_until_complete(done())

    @rule(seconds=st.sampled_from([0.25, 1.0, 61.0]))
    def time_passes(self, seconds: float) -> None:
        """Delayed keys become ready."""
        self.loop.run_until_complete(passes(self.clock, seconds))

    @invariant()
    def nothing_is_lost_or_doubled(self) -> None:
        """The queue and the model hold the same keys."""
        assert len(self.queue) == sum(at <= self.clock.now for _, at in self.waiting.values())
        assert set(self.queue.processing) == self.processing


TestQueueMachine = QueueMachine.TestCase


async def test_a_key_added_twice_comes_once(queue: WorkQueue[str]) -> None:
    """Several additions of a waiting key become one."""
    queue.add("a")
    queue.add("a")
    assert [taken(queue), taken(queue)] == ["a", None]


async def test_a_key_added_while_processed_comes_again_after_done(queue: WorkQueue[str]) -> None:
    """No change is lost, and no key is processed twice at the same time."""
    queue.add("a")
    assert taken(queue) == "a"
    queue.add("a")
    assert taken(queue) is None
    queue.done("a")
    assert taken(queue) == "a"


async def test_a_higher_priority_comes_first(queue: WorkQueue[str]) -> None:
    """Present changes come before the objects of the first list."""
    queue.add("listed", priority=LOW)
    queue.add("changed")
    assert [taken(queue), taken(queue)] == ["changed", "listed"]


async def test_a_low_priority_does_not_starve(queue: WorkQueue[str], clock: Clock) -> None:
    """After a minute, a listed key comes before a new change."""
    queue.add("listed", priority=LOW)
    clock.now += 61
    queue.add("changed")
    assert taken(queue) == "listed"


async def test_a_delayed_key_takes_the_earliest_requested_time(
    queue: WorkQueue[str], clock: Clock
) -> None:
    """A change does not wait for the back-off of an earlier failure."""
    queue.add("a", after=30)
    await passes(clock, 1)
    assert taken(queue) is None
    queue.add("a", after=1)
    await passes(clock, 1)
    assert taken(queue) == "a"


async def test_only_keys_that_a_worker_could_take_are_its_depth(
    queue: WorkQueue[str], clock: Clock
) -> None:
    """A key that is delayed until tomorrow does not count."""
    queue.add("now")
    queue.add("tomorrow", after=86_400)
    assert len(queue) == 1
    clock.now += 86_400
    assert len(queue) == 2


async def test_get_waits_for_the_first_key() -> None:
    """A worker that waits is woken by an addition."""
    queue: WorkQueue[str] = WorkQueue()
    async with asyncio.timeout(WITHIN), asyncio.TaskGroup() as group:
        waiting = group.create_task(queue.get())
        await asyncio.sleep(0)
        queue.add("a", after=0.001)
    result = waiting.result()
    assert result is not None
    assert result[0] == "a"


async def test_a_closed_queue_lets_nothing_out() -> None:
    """Workers end when the queue closes, even if keys wait."""
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    queue.close()
    assert await queue.get() is None


async def test_times_that_were_overtaken_do_not_count(queue: WorkQueue[str], clock: Clock) -> None:
    """A key that is delayed by a day, and meanwhile added every second, comes the next day only once."""
    for _ in range(100):
        queue.add("a", after=86_400)
        queue.add("a")
        assert taken(queue) == "a"
        queue.add("a", after=86_400)
        queue.done("a")
        await passes(clock, 1)
    await passes(clock, 86_398)
    assert taken(queue) is None
    await passes(clock, 1)
    assert taken(queue) == "a"
    assert taken(queue) is None


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
    backoff = KeyBackoff(uniform=lowest)
    assert [backoff.count_failure("a", ERROR) for _ in range(11)] == [
        1,
        2,
        4,
        8,
        16,
        32,
        64,
        128,
        256,
        300,
        300,
    ]


def test_jitter_adds_up_to_a_second() -> None:
    """Keys that failed together are not retried together."""
    assert KeyBackoff(uniform=highest).count_failure("a", ERROR) == 2.0


def test_each_key_has_its_own_count() -> None:
    """One failing object does not slow down another."""
    backoff = KeyBackoff(uniform=lowest)
    backoff.count_failure("a", ERROR)
    assert [backoff.count_failure("a", ERROR), backoff.count_failure("b", ERROR)] == [2, 1]


def test_a_success_starts_again() -> None:
    """A success resets the count of failures."""
    backoff = KeyBackoff(uniform=lowest)
    backoff.count_failure("a", ERROR)
    backoff.forget("a")
    assert backoff.count_failure("a", ERROR) == 1


def test_the_first_conflicts_wait_milliseconds() -> None:
    """The first conflicts are retried at once; later ones wait like other failures."""
    backoff = KeyBackoff(uniform=highest)
    waits = [backoff.count_failure("a", CONFLICT) for _ in range(8)]
    assert waits == [0.01, 0.02, 0.04, 0.08, 0.16, 2, 3, 5]


def test_the_server_may_ask_for_more() -> None:
    """Its Retry-After counts if it is longer, also for conflicts, up to five minutes."""
    backoff = KeyBackoff(uniform=lowest)
    assert backoff.count_failure("a", TooManyRequests(429, "", "", retry_after=7)) == 7
    assert backoff.count_failure("a", TooManyRequests(429, "", "", retry_after=1)) == 2
    assert backoff.count_failure("a", TooManyRequests(429, "", "", retry_after=86_400)) == 300
    assert backoff.count_failure("b", Conflict(409, "", "", retry_after=3)) == 3


def test_a_reconcile_may_ask_for_a_time() -> None:
    """A `RetryableError` with a time is retried after that time, and does not count as a failure."""
    backoff = KeyBackoff(uniform=lowest)
    assert backoff.count_failure("a", RetryableError("later", retry_after=0.5)) == 0.5
    assert backoff.count_failure("a", RetryableError("again")) == 1
