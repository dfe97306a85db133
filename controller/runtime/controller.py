"""A controller: what changes becomes keys, keys wait in a queue, workers reconcile them one by one."""

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable, Iterable, Sized
from functools import partial
from typing import Any

from controller.runtime.backoff import Backoff
from controller.runtime.caches import Cache
from controller.runtime.metrics import Metrics
from controller.runtime.own_writes import OwnWrites
from controller.runtime.queue import LOW, NORMAL, QueueClosedError, Taken, WorkQueue
from controller.runtime.result import Outcome, Request, Result, RetryableError, TerminalError
from controller.runtime.wakes import Wakes, owner
from kube.changes import Change
from kube.errors import AlreadyExists, ApiError, Conflict
from kube.resource import Resource

LOG = logging.getLogger("gatewright.controller")

WORKERS = 5  # of a kind, unless somebody wants more: mostly they wait for the API server
RECONCILE_SECONDS = 60.0
PERIOD = 36_000.0  # every object is looked at again after about ten hours, from the cache


class Controller:
    """Calls `reconcile` for every key that something it watches wakes.

    A reconcile that raises is tried again after a back-off; after a `TerminalError` the next change is awaited.
    """

    def __init__(
        self,
        name: str,
        *,
        reconcile: Callable[[Request], Awaitable[Result]],
        metrics: Metrics,
        workers: int = WORKERS,
        timeout: float = RECONCILE_SECONDS,
        period: float = PERIOD,
        own_writes: OwnWrites | None = None,
        describe: Callable[[Request], dict[str, Any]] | None = None,
        on_mistake: Callable[[Request, Exception], Awaitable[None]] | None = None,
        on_result: Callable[[Request, Outcome, float], None] | None = None,
        uniform: Callable[[float, float], float] = random.uniform,
    ) -> None:
        """Take the reconcile; `describe` gives a request's log fields, `on_result` hears of each reconcile's end.

        `on_mistake` tells people of an exception that nobody meant to raise, once that is logged.
        """
        self.name = name
        self.queue: WorkQueue[Request] = WorkQueue()
        self.caches: list[Cache] = []
        self.reconcile = reconcile
        self._metrics = metrics
        self._workers = workers
        self._timeout = timeout
        self._period = period
        self._own_writes = own_writes or OwnWrites()
        self._describe = describe or self._named
        self._on_mistake = on_mistake
        self._on_result = on_result or (lambda request, outcome, seconds: None)
        self._uniform = uniform
        self._backoff = Backoff(uniform=uniform)
        self._parked: set[Request] = set()
        self._meanwhile: dict[Request, list[tuple[Cache, Change]]] = {}  # judged when their writes have been answered
        self._periodic: list[Cache] = []
        metrics.follow(name, self.queue, workers)

    def watch(self, cache: Cache, wakes: Wakes, *, while_some: Sized | None = None, periodic: bool = False) -> None:
        """Let the changes of a cache wake requests, or only those that come `while_some` wait for them.

        `periodic`: all its keys are looked at now and then.
        """

        def on_change(change: Change) -> None:
            for request in wakes(change):
                self._wake(request, cache, change)

        if while_some is None:
            cache.subscribe(on_change)
        else:
            cache.subscribe_while(while_some, on_change)
        if periodic:
            self._periodic.append(cache)
        self._follow(cache)

    def watch_children(self, cache: Cache, of: Resource) -> None:
        """Let any change of a child wake the object of a resource that controls it, or controlled it before."""
        cache.subscribe_owned(of, lambda change, by: self._wake(owner(of, change, by), cache, change))
        self._follow(cache)

    def _follow(self, cache: Cache) -> None:
        """Wait for a cache before the start, and while something is parked hear what it has seen."""
        if cache not in self.caches:
            self.caches.append(cache)
            writers = partial(self._own_writes.writers, cache)
            cache.subscribe_while(self._parked, lambda change: self._unpark(writers(change.key)))
            cache.subscribe_listed(lambda: self._unpark(list(self._parked)))

    def _wake(self, request: Request, cache: Cache, change: Change) -> None:
        """Ask for a reconcile because something changed, unless that is only what was written for the request.

        What changes while that is being reconciled is judged afterwards, when its writes have been answered.
        """
        if request in self.queue.processing:
            self._meanwhile.setdefault(request, []).append((cache, change))
        elif not self._own_writes.is_echo(request, cache, change):
            self.queue.add(request, priority=LOW if change.initial else NORMAL)

    def add(self, request: Request, *, priority: int = NORMAL, after: float = 0.0) -> None:
        """Ask for a reconcile."""
        self.queue.add(request, priority=priority, after=after)

    def tries_again_at_once(self, request: Request) -> bool:
        """Tell whether a conflict now would be tried again in milliseconds: one that goes on waits for longer."""
        return self._backoff.is_brief(request)

    async def synced(self) -> None:
        """Wait until everything that is watched was read once."""
        for cache in self.caches:
            await cache.synced()

    async def run(self) -> None:
        """Reconcile until `stop`, then end what is being reconciled and return."""
        async with asyncio.TaskGroup() as group:
            periodic = group.create_task(self._look_again(), name=f"{self.name}: periodic pass")
            workers = [group.create_task(self._work(), name=f"{self.name}: worker {n}") for n in range(self._workers)]
            await asyncio.wait(workers)
            periodic.cancel()

    def stop(self) -> None:
        """Begin no reconcile any more."""
        self.queue.close()

    def _unpark(self, requests: Iterable[Request]) -> None:
        """Look at once at what waited for the caches to know what was written for it, and need not any more."""
        for request in requests:
            if request in self._parked and not self._own_writes.wait(request):
                self._parked.discard(request)
                self.add(request)

    async def _work(self) -> None:
        while True:
            try:
                taken = await self.queue.get()
            except QueueClosedError:
                return
            try:
                await self._process(taken)
            finally:
                self.queue.done(taken.key)
                for cache, change in self._meanwhile.pop(taken.key, ()):
                    self._wake(taken.key, cache, change)
            await asyncio.sleep(0)  # a reconcile that finds nothing to do never waits: let others have their turn

    async def _process(self, taken: Taken[Request]) -> None:
        """Reconcile one request, unless the caches do not know yet what we wrote for it."""
        request = taken.key
        if wait := self._own_writes.wait(request):
            self._parked.add(request)
            self.queue.add(request, priority=taken.priority, after=wait)
            return
        self._parked.discard(request)
        started = time.monotonic()
        fields = self._describe(request)
        LOG.info("Starting reconciliation", extra={"fields": fields})
        outcome, again = await self._outcome(request, fields)
        if again is not None:
            self.queue.add(request, priority=taken.priority, after=again)
        seconds = time.monotonic() - started
        if outcome in ("success", "requeue_after"):
            LOG.info("Reconciliation completed", extra={"fields": {**fields, "duration": round(seconds, 4)}})
        self._metrics.reconciled(self.name, outcome, seconds, taken.waited)
        self._on_result(request, outcome, seconds)

    async def _outcome(self, request: Request, fields: dict[str, Any]) -> tuple[Outcome, float | None]:
        """Reconcile once; return how it ended and in how many seconds to try again."""
        limit = asyncio.timeout(self._timeout)
        try:
            async with limit:
                result = await self.reconcile(request)
        except TerminalError as error:
            self._backoff.forget(request)
            LOG.error("Permanent error occurred", extra={"fields": {**fields, "error": str(error)}})
            return "terminal_error", None
        except Exception as error:  # whatever one reconcile raises, the others go on
            wait = self._wait_after(request, error)
            expected = isinstance(error, ApiError | TimeoutError | RetryableError)
            said = f"not done within {self._timeout:g} s" if limit.expired() else str(error) or type(error).__name__
            more = {"error": said, "retry_seconds": round(wait, 3)}
            LOG.warning(
                "Retryable error occurred, requeuing",
                extra={"fields": {**fields, **more}},
                exc_info=None if expected else error,
            )
            self._metrics.failed(self.name, in_time=not limit.expired(), expected=expected)
            if not expected:
                await self._tell(request, error, fields)
            return "error", wait
        self._backoff.forget(request)
        if result.requeue_after is None:
            return "success", None
        return "requeue_after", result.requeue_after.total_seconds()

    async def _tell(self, request: Request, mistake: Exception, fields: dict[str, Any]) -> None:
        """Tell people of a mistake that is in the log already; whatever that raises is logged too, and ends nothing."""
        if self._on_mistake is not None:
            (untold,) = await asyncio.gather(self._on_mistake(request, mistake), return_exceptions=True)
            if untold is not None:
                LOG.warning("The mistake could not be told", extra={"fields": fields}, exc_info=untold)

    def _wait_after(self, request: Request, error: Exception) -> float:
        if isinstance(error, RetryableError) and error.retry_after is not None:
            return error.retry_after
        asked = (error.retry_after or 0.0) if isinstance(error, ApiError) else 0.0
        return self._backoff.failed(request, conflict=isinstance(error, Conflict | AlreadyExists), asked=asked)

    async def _look_again(self) -> None:
        """Add all keys at a low priority about once in a period, spread over a tenth of it."""
        while self._periodic:
            await asyncio.sleep(self._period * self._uniform(0.9, 1.0))
            for cache in self._periodic:
                for key in cache:
                    self.add(Request.of(key), priority=LOW, after=self._uniform(0.0, self._period / 10))

    def _named(self, request: Request) -> dict[str, Any]:
        return {f"{self.name}.name": request.name, f"{self.name}.namespace": request.namespace}
