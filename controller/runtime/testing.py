"""For unit tests: one reconcile at a time, against an API server in the test's own process."""

import asyncio
from collections.abc import Callable
from typing import Any, Protocol

from prometheus_client import CollectorRegistry

from controller.runtime.kind import PlannedKind
from controller.runtime.manager import Manager
from controller.runtime.types import Request, Result
from kube.endpoint import Endpoint

Setup = Callable[[Manager], object]


class Server(Protocol):
    """An API server, such as the one in the test's own process."""

    @property
    def endpoint(self) -> Endpoint:
        """Where it answers."""


async def reconcile(
    target: PlannedKind[Any] | Setup, server: Server, name: str, namespace: str | None = "default", **settings: Any
) -> Result:
    """Reconcile one object once, as a controller does that has just started and synced its caches.

    `target` is a planned kind, whose planner gets the `settings`, or a function that adds one controller to a manager.
    Raises what the reconcile raises; its events are written when it returns.
    """
    manager = Manager(server.endpoint, CollectorRegistry(), identity="test")
    if isinstance(target, PlannedKind):
        manager.add_kind(target, settings=settings)
    else:
        target(manager)
    (controller,) = manager.controllers
    async with manager.client:
        running = [asyncio.create_task(each) for each in (manager.caches.run(), manager.recorder.run())]
        try:
            await manager.caches.synced()
            return await controller.reconcile(Request(namespace, name))
        finally:
            await manager.recorder.flush()
            for task in running:
                task.cancel()
            await asyncio.wait(running)
