"""Runs controllers: caches first, then the election, then the work; and ends it all in the right order."""

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from typing import Any

from controller.runtime.caches import Caches
from controller.runtime.controller import Controller
from controller.runtime.events import Recorder
from controller.runtime.leader import Election, LeadershipLostError

LOG = logging.getLogger("gatewright.controller")

DRAIN_SECONDS = 30.0
FLUSH_SECONDS = 5.0


async def run(
    controllers: Sequence[Controller],
    caches: Caches,
    recorder: Recorder,
    stop: asyncio.Event,
    *,
    election: Election | None = None,
) -> None:
    """Run until `stop` is set; without an election this process leads from the start.

    The caches of a process that waits for the lease are kept right too, so that it can take over at once. A controller
    begins when its own caches are complete; one that cannot be filled holds up nobody else.
    Raises `LeadershipLostError` when the lease is lost: the process must end then.
    """
    try:
        async with asyncio.TaskGroup() as group:
            endless = [group.create_task(caches.run(), name="caches"), group.create_task(recorder.run(), name="events")]
            if election is None:
                await _work(controllers, stop)
            elif await _before(stop, election.campaign()):
                endless.append(group.create_task(election.hold(), name="lease"))
                await _work(controllers, stop)
            await _flush(recorder)
            for task in endless:
                task.cancel()
            await asyncio.wait(endless)
            if election is not None:
                await election.release()
    except ExceptionGroup as failures:
        lost, others = failures.split(LeadershipLostError)
        if lost is None or others is not None:
            raise
        raise LeadershipLostError(str(_first(lost))) from failures


async def _work(controllers: Sequence[Controller], stop: asyncio.Event) -> None:
    """Run the controllers until `stop`, and give what they are at some time to end."""
    async with asyncio.TaskGroup() as group:
        running = [group.create_task(_when_synced(each, stop), name=each.name) for each in controllers]
        await stop.wait()
        for controller in controllers:
            controller.stop()
        _, late = await asyncio.wait(running, timeout=DRAIN_SECONDS)
        for task in late:
            LOG.warning("controller %s did not end in time", task.get_name())
            task.cancel()


async def _when_synced(controller: Controller, stop: asyncio.Event) -> None:
    if await _before(stop, controller.synced()):
        await controller.run()


async def _before(stop: asyncio.Event, waiting: Coroutine[Any, Any, None]) -> bool:
    """Wait for something, but not longer than for `stop`; tell whether it came."""
    async with asyncio.TaskGroup() as group:
        awaited = group.create_task(waiting)
        stopped = group.create_task(stop.wait())
        await asyncio.wait([awaited, stopped], return_when=asyncio.FIRST_COMPLETED)
        came = awaited.done()
        awaited.cancel()
        stopped.cancel()
    return came


async def _flush(recorder: Recorder) -> None:
    try:
        async with asyncio.timeout(FLUSH_SECONDS):
            await recorder.flush()
    except TimeoutError:
        LOG.warning("not all events were written in time")


def _first(failures: BaseException) -> BaseException:
    while isinstance(failures, BaseExceptionGroup):
        failures = failures.exceptions[0]
    return failures
