"""All controllers of a process: what they share, and the order in which it starts and ends."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any

from prometheus_client import CollectorRegistry

from controller.runtime.caches import Caches
from controller.runtime.controller import WORKERS, Controller
from controller.runtime.events import Recorder
from controller.runtime.health import Heartbeat, Readiness
from controller.runtime.leader import Election, LeadershipLostError, LeaseSettings
from controller.runtime.metrics import Metrics
from controller.runtime.planned import Planned
from controller.runtime.planned_kind import PlannedKind
from controller.runtime.result import Request, Result
from controller.runtime.watching import For, Owns, Watches, watch
from kube.client import Client
from kube.endpoint import Endpoint

LOG = logging.getLogger("gatewright.controller")

DRAIN_SECONDS = 30.0
FLUSH_SECONDS = 5.0


class Runtime:
    """Add kinds and controllers, then `run`."""

    def __init__(
        self,
        endpoint: Endpoint,
        registry: CollectorRegistry,
        *,
        identity: str,
        lease: LeaseSettings | None = None,
        namespaces: Sequence[str] = (),
        workers: int = WORKERS,
        per_object_metrics: bool = True,
        user_agent: str = "gatewright-controller",
    ) -> None:
        """Take the API server; without a lease this process leads from the start.

        `workers`: how many reconciles at the same time a controller has that is added without a number of its own.
        """
        self.metrics = Metrics(registry, per_object=per_object_metrics)
        on_response = self.metrics.requests_to(endpoint.host)
        self.election: Election | None = None
        self._clients = []
        if lease is not None:
            self.metrics.leading(lease.name, leads=False)
            own = Client(endpoint, user_agent=f"{user_agent}/leader-election", on_response=on_response)
            self._clients.append(own)
            self.election = Election(
                own, lease, identity, on_change=lambda leads: self.metrics.leading(lease.name, leads=leads)
            )
        gate = self.election.check if self.election else None
        self.client = Client(endpoint, user_agent=user_agent, write_gate=gate, on_response=on_response)
        """What the controllers read and write with; it refuses to write unless this process leads."""
        self._clients.append(self.client)
        self.caches = Caches(self.client, namespaces)
        self.recorder = Recorder(self.client, identity)
        self.readiness = Readiness(self.caches, self.election)
        self.heartbeat = Heartbeat()
        self.controllers: list[Controller] = []
        self._workers = workers

    def add(self, controller: Controller) -> None:
        """Run a controller too; its caches are of `caches`."""
        self.controllers.append(controller)

    def control(
        self,
        name: str,
        reconcile: Callable[[Request], Awaitable[Result]],
        *watched: For | Owns | Watches,
        workers: int | None = None,
    ) -> Controller:
        """Call `reconcile` for whatever the changes of what is `watched` wake."""
        controller = Controller(name, reconcile=reconcile, metrics=self.metrics, workers=workers or self._workers)
        watch(controller, self.caches, watched)
        self.add(controller)
        return controller

    def add_kind(
        self, kind: PlannedKind[Any], *, workers: int | None = None, settings: Mapping[str, Any] | None = None
    ) -> None:
        """Carry out the plans of a kind."""
        planned = Planned(
            kind,
            self.client,
            self.caches,
            self.recorder,
            self.metrics,
            workers=workers or self._workers,
            settings=settings,
        )
        self.add(planned.controller)

    async def run(self, stop: asyncio.Event) -> None:
        """Run until `stop` is set.

        A process that waits for the lease keeps its caches right too, so that it can take over at once. A controller
        begins when its own caches are complete; one that cannot be filled holds up nobody else.
        Raises `LeadershipLostError` when the lease is lost: the process must end then.
        """
        async with AsyncExitStack() as open_clients:
            for client in self._clients:
                await open_clients.enter_async_context(client)
            try:
                async with asyncio.TaskGroup() as group:
                    await self._run(group, stop)
            except ExceptionGroup as failures:
                lost, others = failures.split(LeadershipLostError)
                if lost is None or others is not None:
                    raise
                raise LeadershipLostError(str(_first(lost))) from failures

    async def _run(self, group: asyncio.TaskGroup, stop: asyncio.Event) -> None:
        endless = {"caches": self.caches.run(), "events": self.recorder.run(), "heartbeat": self.heartbeat.run()}
        tasks = [group.create_task(each, name=name) for name, each in endless.items()]
        if self.election is None:
            await _work(self.controllers, stop)
        elif await _before(stop, self.election.campaign()):
            tasks.append(group.create_task(self.election.hold(), name="lease"))
            await _work(self.controllers, stop)
        try:
            async with asyncio.timeout(FLUSH_SECONDS):
                await self.recorder.flush()
        except TimeoutError:
            LOG.warning("not all events were written in time")
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        if self.election is not None:
            await self.election.release()


async def _work(controllers: Sequence[Controller], stop: asyncio.Event) -> None:
    """Run the controllers until `stop`, and give what they are at some time to end."""
    async with asyncio.TaskGroup() as group:
        running = [group.create_task(_when_synced(each, stop), name=each.name) for each in controllers]
        await stop.wait()
        for controller in controllers:
            controller.stop()
        late = (await asyncio.wait(running, timeout=DRAIN_SECONDS))[1] if running else ()
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


def _first(failures: BaseException) -> BaseException:
    while isinstance(failures, BaseExceptionGroup):
        failures = failures.exceptions[0]
    return failures
