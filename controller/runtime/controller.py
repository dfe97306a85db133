"""A controller: event sources enqueue requests, workers reconcile them one by one."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from controller.runtime.cache import Cache
from controller.runtime.expectations import Expectations
from controller.runtime.metrics import ControllerMetrics, KindMetrics
from controller.runtime.sources import Mapper, Predicate, any_change
from controller.runtime.types import (
    ReconcileOutcome,
    ReconcileRequest,
    Result,
    RetryableError,
    TerminalError,
)
from controller.runtime.workqueue import LOW, NORMAL, KeyBackoff, WorkQueue
from kube.errors import ApiError
from kube.store import Change

LOG = logging.getLogger("gatewright.controller")

WORKERS = 5  # the default per controller: most of the time they wait for the API server
RECONCILE_TIMEOUT = 60.0  # seconds
RESYNC_PERIOD = 36_000.0  # every object is reconciled again every ten hours, from the cache


class Controller:
    """Calls `reconcile` for every request that its event sources enqueue.

    A reconcile that raises is retried with back-off; after a `TerminalError` the controller waits
    for the next change.
    """

    def __init__(
        self,
        name: str,
        *,
        reconcile: Callable[[ReconcileRequest], Awaitable[Result]],
        metrics: ControllerMetrics,
        kind_metrics: KindMetrics | None = None,
        workers: int = WORKERS,
        timeout: float = RECONCILE_TIMEOUT,
        expectations: Expectations | None = None,
    ) -> None:
        """Take the reconcile function; `timeout` is in seconds.

        `kind_metrics` count each object of a planned kind.
        """
        self.name = name
        self.reconcile = reconcile
        self._metrics = metrics
        self._kind_metrics = kind_metrics
        self._workers = workers
        self._timeout = timeout
        self._expectations = expectations or Expectations()
        self._backoff = KeyBackoff()
        self.queue: WorkQueue[ReconcileRequest] = WorkQueue(on_add=metrics.adds.labels(name).inc)
        metrics.follow(name, self.queue, workers)
        self.caches: list[Cache] = []  # caches that must be synced before the first reconcile
        self.waits_for: list[asyncio.Event] = []  # what must be set, too
        self.primary: Cache | None = None
        """The cache of the reconciled objects, if there is one."""

    def watch(
        self,
        cache: Cache,
        mapper: Mapper,
        predicate: Predicate = any_change,
        *,
        primary: bool = False,
    ) -> None:
        """Enqueue what `mapper` returns for each change of a cache that passes the predicate.

        With `primary`, the cache has the reconciled objects.
        """

        def on_change(change: Change) -> None:
            for request in mapper(change) if predicate(change) else ():
                self.add(request, priority=LOW if change.initial else NORMAL)

        cache.subscribe(on_change)
        if primary:
            self.primary = cache
        if cache not in self.caches:
            self.caches.append(cache)
            cache.subscribe_touched(partial(self._wake_waiting, cache))

    def add(
        self, request: ReconcileRequest, *, priority: float = NORMAL, after: float = 0.0
    ) -> None:
        """Enqueue a request in `after` seconds."""
        self.queue.add(request, priority=priority, after=after)

    def resync(self) -> None:
        """Enqueue all objects at a low priority."""
        for key in self.primary or ():
            self.add(ReconcileRequest.of(key), priority=LOW)

    async def wait_synced(self) -> None:
        """Wait until all watched caches are synced, and the events of `waits_for` are set."""
        for cache in self.caches:
            await cache.wait_synced()
        for event in self.waits_for:
            await event.wait()

    async def run(self) -> None:
        """Reconcile until `stop`; then finish the running reconciles and return."""
        async with asyncio.TaskGroup() as group:
            periodic = group.create_task(self._resync_periodically(), name=f"{self.name}: resync")
            workers = [
                group.create_task(self._work(), name=f"{self.name}: worker {n}")
                for n in range(self._workers)
            ]
            await asyncio.wait(workers)
            periodic.cancel()

    def stop(self) -> None:
        """Start no more reconciles."""
        self.queue.close()

    def _wake_waiting(self, cache: Cache, key: str) -> None:
        """Enqueue the requests that wait for this object.

        They wait again if this was not the expected change.
        """
        for request in self._expectations.woken(cache, key):
            self.add(request)

    async def _work(self) -> None:
        while (taken := await self.queue.get()) is not None:
            request, waited = taken
            try:
                await self._process(request, waited)
            finally:
                self.queue.done(request)
            # A reconcile without requests never awaits, so let other tasks run.
            await asyncio.sleep(0)

    async def _process(self, request: ReconcileRequest, waited: float) -> None:
        """Reconcile one request, unless the caches do not have its own writes yet."""
        if wait := self._expectations.wait(request):
            self.add(request, after=wait)
            return
        started = time.monotonic()
        outcome, again = await self._reconcile(request)
        if again is not None:
            # Objects that wait for their children must not delay those that changed.
            priority = LOW if outcome == "requeue_after" else NORMAL
            self.add(request, priority=priority, after=again)
        seconds = time.monotonic() - started
        self._metrics.count_reconcile(self.name, outcome, seconds, waited)
        if self._kind_metrics is None:
            return
        if self.primary is not None and self.primary.entry(request.key) is None:
            self._kind_metrics.forget(request)
        else:
            self._kind_metrics.count_reconcile(request, outcome, seconds)

    async def _reconcile(self, request: ReconcileRequest) -> tuple[ReconcileOutcome, float | None]:
        """Reconcile once and log it.

        Return the outcome and in how many seconds to reconcile again.
        """
        started, limit = time.monotonic(), asyncio.timeout(self._timeout)
        fields: dict[str, Any] = {
            f"{self.name}.name": request.name,
            f"{self.name}.namespace": request.namespace,
        }
        try:
            fields |= self._describe(request)
            LOG.info("Starting reconciliation", extra={"fields": fields})
            async with limit:
                result = await self.reconcile(request)
        except TerminalError as error:
            self._backoff.forget(request)
            LOG.error("Permanent error occurred", extra={"fields": {**fields, "error": str(error)}})
            return "terminal_error", None
        except Exception as error:  # an error of one reconcile must not stop the others
            wait = self._backoff.count_failure(request, error)
            expected = isinstance(error, ApiError | TimeoutError | RetryableError)
            text = (
                f"not done within {self._timeout:g} s"
                if limit.expired()
                else str(error) or type(error).__name__
            )
            fields |= {"error": text, "retry_seconds": round(wait, 3)}
            traceback = None if expected else error
            LOG.warning(
                "Retryable error occurred, requeuing", extra={"fields": fields}, exc_info=traceback
            )
            return "timeout" if limit.expired() else "error" if expected else "panic", wait
        again = self._backoff.count_failure(request) if result.requeue else None
        if again is None:
            self._backoff.forget(request)
        duration = round(time.monotonic() - started, 4)
        LOG.info("Reconciliation completed", extra={"fields": {**fields, "duration": duration}})
        if again is not None:
            return "requeue", again
        if result.requeue_after is None:
            return "success", None
        return "requeue_after", result.requeue_after.total_seconds()

    def _describe(self, request: ReconcileRequest) -> dict[str, Any]:
        """Return the log fields of an object, as far as it has them."""
        stored = (self.primary.get(request.key) if self.primary else None) or {}
        metadata, spec, status = (
            part if isinstance(part := stored.get(key), dict) else {}
            for key in ("metadata", "spec", "status")
        )
        fields = {
            f"{self.name}.generation": metadata.get("generation"),
            f"{self.name}.resourceVersion": metadata.get("resourceVersion"),
            "phase": status.get("phase"),
            "replicas.desired": spec.get("replicas"),
            "replicas.ready": status.get("readyReplicas"),
        }
        return {name: value for name, value in fields.items() if value is not None}

    async def _resync_periodically(self) -> None:
        while True:
            await asyncio.sleep(RESYNC_PERIOD)
            self.resync()
