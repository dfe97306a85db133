"""What takes too long is ended, and nothing else."""

import asyncio
from contextlib import suppress

import pytest

from controller.runtime.time_limit import TimeLimit


async def forever() -> None:
    """Wait for what never comes."""
    await asyncio.Event().wait()


def cancellations() -> int:
    """How many have cancelled this task and not taken it back."""
    task = asyncio.current_task()
    assert task is not None
    return task.cancelling()


async def test_what_takes_too_long_is_ended_each_time() -> None:
    """It raises as `asyncio.timeout` does, and leaves the task as if nobody had cancelled it."""
    limit = TimeLimit(0.01)
    for _ in range(2):
        with pytest.raises(TimeoutError), limit:
            await forever()
        assert (limit.expired, cancellations()) == (True, 0)
    with limit:
        pass
    assert not limit.expired


async def test_each_piece_of_work_has_the_whole_time() -> None:
    """The timer that the first has set ends neither what comes after it nor what is done beside it."""
    limit, loop = TimeLimit(0.05), asyncio.get_running_loop()
    with limit, pytest.raises(TimeoutError), TimeLimit(0.03):
        await forever()
    assert not limit.expired
    begun = loop.time()
    with pytest.raises(TimeoutError), limit:
        await forever()
    assert loop.time() - begun > 0.045
    with limit:
        pass
    with pytest.raises(TimeoutError), TimeLimit(0.1):
        await forever()
    assert (limit.expired, cancellations()) == (False, 0)


@pytest.mark.parametrize("late", [False, True])
async def test_who_cancels_the_task_is_heeded(late: bool) -> None:
    """In time or too late: the limit takes back its own cancellation alone."""
    limit = TimeLimit(0.01 if late else 60)
    begun, ended = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        with limit:
            try:
                begun.set()
                await forever()
            finally:
                ended.set()
                if late:
                    await forever()

    task = asyncio.create_task(work())
    await (ended if late else begun).wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (task.cancelled(), limit.expired) == (True, late)


async def test_what_comes_of_the_work_goes_before_the_time_out() -> None:
    """It may raise an error of its own when it is ended, or end well all the same."""

    async def failing() -> None:
        try:
            await forever()
        finally:
            raise ValueError("while it ended")

    limit = TimeLimit(0.01)
    with pytest.raises(ValueError, match="while it ended"), limit:
        await failing()
    with limit, suppress(asyncio.CancelledError):
        await forever()
    assert (limit.expired, cancellations()) == (True, 0)
