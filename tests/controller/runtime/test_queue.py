"""The work queue, against a plain model of what it promises, and one promise at a time."""

import asyncio

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from controller.runtime.queue import LOW, NORMAL, OVERTAKEN, QueueClosedError, WorkQueue
from tests.controller.runtime.clock import Clock

KEYS = st.sampled_from("abcde")


@pytest.fixture
def clock() -> Clock:
    """A clock that only the test moves."""
    return Clock()


@pytest.fixture
def queue(clock: Clock) -> WorkQueue[str]:
    """A queue on that clock."""
    return WorkQueue(clock=clock)


def taken(queue: WorkQueue[str]) -> str | None:
    """The next key."""
    found = queue.take()
    return found.key if found else None


class QueueMachine(RuleBasedStateMachine):
    """Whatever is added, taken and done in whatever order, the queue agrees with two dictionaries."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = Clock()
        self.queue: WorkQueue[str] = WorkQueue(clock=self.clock)
        self.waiting: dict[str, tuple[int, float]] = {}
        self.processing: set[str] = set()

    @rule(key=KEYS, priority=st.sampled_from([LOW, NORMAL]), after=st.sampled_from([0.0, 0.5, 1.0, 70.0]))
    def add(self, key: str, priority: int, after: float) -> None:
        """Of several additions the highest priority and the earliest time count."""
        self.queue.add(key, priority=priority, after=after)
        old_priority, old_time = self.waiting.get(key, (priority, float("inf")))
        self.waiting[key] = (max(priority, old_priority), min(self.clock.now + after, old_time))

    @rule()
    def take(self) -> None:
        """The free key that is ready and first comes out, or none does."""
        ready = {
            key: at - priority * 0.6
            for key, (priority, at) in self.waiting.items()
            if at <= self.clock.now and key not in self.processing
        }
        found = self.queue.take()
        if not ready:
            assert found is None
            return
        assert found is not None
        assert found.key in ready
        assert ready[found.key] == min(ready.values())
        assert found.priority == self.waiting.pop(found.key)[0]
        self.processing.add(found.key)

    @precondition(lambda self: self.processing)
    @rule(data=st.data())
    def done(self, data: st.DataObject) -> None:
        """A key that was taken is free again."""
        key = data.draw(st.sampled_from(sorted(self.processing)))
        self.processing.remove(key)
        self.queue.done(key)

    @rule(seconds=st.sampled_from([0.25, 1.0, 61.0]))
    def time_passes(self, seconds: float) -> None:
        """Delayed keys become ready."""
        self.clock.now += seconds

    @invariant()
    def nothing_is_lost_or_doubled(self) -> None:
        """The queue and the model hold the same keys."""
        assert len(self.queue) == len(self.waiting)
        assert set(self.queue.processing) == self.processing


TestQueueMachine = QueueMachine.TestCase


def test_a_key_added_twice_comes_once(queue: WorkQueue[str]) -> None:
    """Additions of a key that waits already become one."""
    queue.add("a")
    queue.add("a")
    assert [taken(queue), taken(queue)] == ["a", None]


def test_a_key_added_while_processed_comes_again_after_done(queue: WorkQueue[str]) -> None:
    """No change is lost, and no key is processed twice at once."""
    queue.add("a")
    assert taken(queue) == "a"
    queue.add("a")
    assert taken(queue) is None
    queue.done("a")
    assert taken(queue) == "a"


def test_a_higher_priority_goes_first(queue: WorkQueue[str]) -> None:
    """What people change now goes before the first list."""
    queue.add("listed", priority=LOW)
    queue.add("changed")
    assert [taken(queue), taken(queue)] == ["changed", "listed"]


def test_a_low_priority_does_not_starve(queue: WorkQueue[str], clock: Clock) -> None:
    """After a minute of waiting a listed key goes before a fresh change."""
    queue.add("listed", priority=LOW)
    clock.now += 61
    queue.add("changed")
    assert taken(queue) == "listed"


def test_a_delayed_key_waits_until_an_earlier_time_is_asked_for(queue: WorkQueue[str], clock: Clock) -> None:
    """A change does not wait for the back-off of a failure before it."""
    queue.add("a", after=30)
    clock.now += 1
    assert taken(queue) is None
    queue.add("a", after=1)
    clock.now += 1
    assert taken(queue) == "a"


async def test_get_waits_for_the_first_key() -> None:
    """A worker that waits is woken by an addition."""
    queue: WorkQueue[str] = WorkQueue()
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        waiting = group.create_task(queue.get())
        await asyncio.sleep(0)
        queue.add("a", after=0.001)
    assert waiting.result().key == "a"


async def test_a_closed_queue_lets_nothing_out() -> None:
    """Workers end when the queue closes, whatever still waits."""
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    queue.close()
    with pytest.raises(QueueClosedError):
        await queue.get()


def test_times_that_were_overtaken_do_not_pile_up(queue: WorkQueue[str], clock: Clock) -> None:
    """A key that comes again tomorrow, but is wanted each second meanwhile, comes tomorrow just once."""
    for _ in range(5 * OVERTAKEN):
        queue.add("a", after=86_400)
        queue.add("a")
        assert taken(queue) == "a"
        queue.add("a", after=86_400)
        queue.done("a")
        clock.now += 1
    assert len(queue._delayed) <= OVERTAKEN + 2
    clock.now += 86_398
    assert taken(queue) is None
    clock.now += 1
    assert taken(queue) == "a"
    assert len(queue) == 0
