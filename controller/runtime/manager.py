"""The manager: runs all controllers of a process, with shared client, caches and election."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import partial
from typing import Any

from prometheus_client import CollectorRegistry

from controller.runtime.apply import FIELD_MANAGER
from controller.runtime.cache import Cache, Caches
from controller.runtime.conflict_backoff import Conflicts
from controller.runtime.controller import WORKERS, Controller
from controller.runtime.events import REPORTER, EventRecorder
from controller.runtime.expectations import Expectations
from controller.runtime.explanations import Explanations
from controller.runtime.health import unready
from controller.runtime.installations import Installations, Scope
from controller.runtime.kind import PlannedKind, Reads
from controller.runtime.leader import Election, LeaseSettings
from controller.runtime.metrics import ControllerMetrics, KindMetrics
from controller.runtime.reconciler import Reconciler
from controller.runtime.sources import (
    For,
    Owns,
    Watches,
    itself,
    map_objects,
    owner_of,
    readers_of,
    spec_changed,
)
from controller.runtime.status_writer import StatusWriter
from controller.runtime.types import ReconcileRequest, Result
from kube.client import Client
from kube.endpoint import Endpoint
from kube.resource import Resource, definition_of
from kube.store import Change

LOG = logging.getLogger("gatewright.controller")

SHUTDOWN_TIMEOUT = 30.0  # seconds for running reconciles
FLUSH_TIMEOUT = 5.0  # seconds for writing recorded events


class Manager:
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
        reporter: str = REPORTER,
    ) -> None:
        """Take the API server; without a lease this process leads from the start.

        `workers` is the default number of concurrent reconciles of a controller, `reporter` the
        source of its events.
        """
        self.metrics = ControllerMetrics(registry, per_object=per_object_metrics)
        on_response = partial(self.metrics.count_response, endpoint.host)
        self.election: Election | None = None
        if lease is not None:
            own = Client(
                endpoint, user_agent=f"{user_agent}/leader-election", on_response=on_response
            )
            self.election = Election(own, lease, identity)
            self.metrics.leading.labels(lease.name).set_function(self.election.leading.is_set)
        gate = self.election.check if self.election else None
        self.client = Client(
            endpoint, user_agent=user_agent, write_gate=gate, on_response=on_response
        )
        """The client of the controllers, which writes only while this process leads."""
        self.caches = Caches(self.client, namespaces)
        self.recorder = EventRecorder(self.client, identity, reporter=reporter)
        self.installations = (
            Installations(
                self.election.client, lease, self.recorder, self.metrics.older_installations
            )
            if self.election is not None and lease is not None
            else None
        )
        self.controllers: list[Controller] = []
        self._workers = workers

    def unready(self) -> str | None:
        """Return why this process is not ready; None if it is."""
        return unready(self.caches, self.election)

    def add(self, controller: Controller) -> None:
        """Add a controller; its caches must come from `caches`."""
        self.controllers.append(controller)

    def control(
        self,
        name: str,
        reconcile: Callable[[ReconcileRequest], Awaitable[Result]],
        *sources: For | Owns | Watches,
        workers: int | None = None,
    ) -> Controller:
        """Add a controller that calls `reconcile` for the requests of its event sources.

        Raises ValueError for an Owns without exactly one For.
        """
        controller = Controller(
            name, reconcile=reconcile, metrics=self.metrics, workers=workers or self._workers
        )
        owners = [each.resource for each in sources if isinstance(each, For)]
        for source in sources:
            cache = self.caches.of(source.resource)
            match source:
                case For(_, predicate):
                    controller.watch(cache, itself, predicate, primary=True)
                case Owns(resource):
                    if len(owners) != 1:
                        raise ValueError(
                            f"Owns({resource.plural}) needs exactly one For beside it: the owner's"
                        )
                    controller.watch(cache, owner_of(owners[0]))
                case Watches(_, map):
                    controller.watch(cache, map_objects(map))
        self.add(controller)
        return controller

    def add_kind(
        self,
        kind: PlannedKind[Any],
        *,
        workers: int | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        """Add the controller of a planned kind; its planner gets the `settings`."""
        caches = self._caches_of(kind)
        expectations = Expectations()
        metrics = KindMetrics(kind.resource.kind, self.metrics, kind.counts)
        conflicts = Conflicts()
        status_writer = StatusWriter(
            kind,
            self.client,
            caches[kind.resource],
            self.recorder,
            metrics,
            expectations,
            conflicts,
            FIELD_MANAGER,
        )
        reconciler = Reconciler(
            kind,
            self.client,
            caches,
            self.recorder,
            metrics,
            expectations,
            settings or {},
            Explanations(self.client),
            conflicts,
            status_writer,
            self.installations,
        )
        controller = Controller(
            kind.name,
            reconcile=reconciler.reconcile,
            metrics=self.metrics,
            kind_metrics=metrics,
            workers=workers or self._workers,
            expectations=expectations,
        )

        def is_relevant(change: Change) -> bool:
            return spec_changed(change) or status_writer.is_foreign(change)

        def retry_statuses() -> None:
            if status_writer.retry_now():
                controller.resync()

        controller.watch(caches[kind.resource], itself, is_relevant, primary=True)
        caches[kind.resource].subscribe_new_schema(retry_statuses)
        for resource in kind.owns:
            controller.watch(caches[resource], owner_of(kind.resource))
        for resource, reads in kind.reads.items():
            controller.watch(
                caches[resource], readers_of(kind, caches[kind.resource], reads.indexes)
            )
        for resource in kind.optional:
            caches[resource].subscribe_served(controller.resync)
        if self.installations is not None and self.election is not None:
            self._reconcile_alone(self.installations, self.election, controller, kind.resource)
        self.add(controller)

    def _reconcile_alone(
        self,
        installations: Installations,
        election: Election,
        controller: Controller,
        resource: Resource,
    ) -> None:
        """Let a controller wait until other installations are known, and declare its kind."""
        kinds = installations.scope.kinds | {definition_of(resource)}
        installations.scope = Scope(kinds, frozenset(self.caches.namespaces))
        election.metadata = installations.scope.metadata
        installations.on_change.append(controller.resync)
        controller.waits_for.append(installations.known)

    def _caches_of(self, kind: PlannedKind[Any]) -> dict[Resource, Cache]:
        """Return a kind's caches: of its objects, their children, and what its planner reads."""
        caches = {kind.resource: self.caches.of(kind.resource)}
        labels = {resource: reads.labels for resource, reads in kind.reads.items()}
        for resource in dict.fromkeys((*kind.owns, *kind.reads)):
            caches[resource] = self.caches.part_of(
                resource, optional=resource in kind.optional, labels=labels.get(resource)
            )
        for owned in kind.owns:
            caches[owned].filter.keep_children_of(kind.resource)
        for read in (Reads(kind.resource, kind.indexes), *kind.reads.values()):
            filter = caches[read.resource].filter
            if read.indexes:
                filter.keep_found_by(read.indexes, read.fields)
            else:
                filter.keep_all()
            for name, function in read.indexes.items():
                caches[read.resource].add_index(kind.index_name(name), function)
        return caches

    async def run(self, stop: asyncio.Event) -> None:
        """Run until `stop` is set.

        While it waits for the Lease, a process keeps its caches up to date, so that it can take
        over at once. A controller starts when its own caches are synced; a cache that cannot be
        filled delays no other controller. Raises a group with a `LeadershipLostError` when the
        Lease is lost; then the process must exit.
        """
        async with AsyncExitStack() as open_clients:
            for client in (
                [self.client] if self.election is None else [self.client, self.election.client]
            ):
                await open_clients.enter_async_context(client)
            async with asyncio.TaskGroup() as group:
                await self._run(group, stop)

    async def _run(self, group: asyncio.TaskGroup, stop: asyncio.Event) -> None:
        caches = group.create_task(self.caches.run(), name="caches")
        tasks = [group.create_task(self.recorder.run(), name="events")]
        if self.election is None:
            await _work(self.controllers, stop)
        elif await _before(stop, self.election.campaign()):
            tasks.append(group.create_task(self.election.hold(), name="lease"))
            if self.installations is not None and self.installations.scope.kinds:
                looking = self.installations.run()
                tasks.append(group.create_task(looking, name="installations"))
            # A connection may have died unnoticed while another process led.
            if self.election.waited:
                caches.cancel()
                await asyncio.wait([caches])
                self.caches.unsync()
                caches = group.create_task(self.caches.run(), name="caches")
            await _work(self.controllers, stop)
        try:
            async with asyncio.timeout(FLUSH_TIMEOUT):
                await self.recorder.flush()
        except TimeoutError:
            LOG.warning("not all events were written in time")
        for task in (caches, *tasks):
            task.cancel()
        await asyncio.wait([caches, *tasks])
        if self.election is not None:
            await self.election.release()


async def _work(controllers: Sequence[Controller], stop: asyncio.Event) -> None:
    """Run the controllers until `stop`.

    Then give running reconciles some time to finish.
    """
    async with asyncio.TaskGroup() as group:
        running = [
            group.create_task(_when_synced(controller, stop), name=controller.name)
            for controller in controllers
        ]
        await stop.wait()
        for controller in controllers:
            controller.stop()
        late = (await asyncio.wait(running, timeout=SHUTDOWN_TIMEOUT))[1] if running else ()
        for task in late:
            LOG.warning("controller %s did not end in time", task.get_name())
            task.cancel()


async def _when_synced(controller: Controller, stop: asyncio.Event) -> None:
    if await _before(stop, controller.wait_synced()):
        await controller.run()


async def _before(stop: asyncio.Event, waiting: Coroutine[Any, Any, None]) -> bool:
    """Wait for a coroutine, but only until `stop`; return whether it finished."""
    async with asyncio.TaskGroup() as group:
        awaited = group.create_task(waiting)
        stopped = group.create_task(stop.wait())
        await asyncio.wait([awaited, stopped], return_when=asyncio.FIRST_COMPLETED)
        came = awaited.done()
        awaited.cancel()
        stopped.cancel()
    return came
