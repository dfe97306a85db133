"""Events of events.k8s.io/v1, written in the background; repetitions are written seldom."""

import asyncio
import logging
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Never

from controller.runtime.leader import NotLeadingError, micro_time
from controller.runtime.plan import Event
from kube.client import Client
from kube.errors import ApiError
from kube.resource import JsonObject, Resource

LOG = logging.getLogger("gatewright.events")

EVENT = Resource("events.k8s.io", "v1", "events", "Event")
REPORTER = "gatewright.io/controller"
MAX_QUEUED = 1000
MAX_KNOWN = 1024
# Seconds after which a repetition is an event of its own; longer than the longest back-off.
REPETITION_WINDOW = 360.0
# Seconds until a repetition is written again: the API server deletes events after an hour.
REFRESH_INTERVAL = 1800.0
MAX_NOTE = 1024

Identity = tuple[str, ...]  # the same for all occurrences of an event


class EventRecorder:
    """Records events about objects."""

    def __init__(
        self, client: Client, instance: str, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._client = client
        self._instance = instance
        self._clock = clock
        # When each event was recorded last, and when it was written last.
        self._known: OrderedDict[Identity, tuple[float, float]] = OrderedDict()
        self._queue: asyncio.Queue[tuple[Identity, JsonObject]] = asyncio.Queue(MAX_QUEUED)

    def record(self, regarding: JsonObject, event: Event) -> None:
        """Record an event about an object; it is dropped if too many are waiting."""
        if self._queue.full():
            LOG.warning("event dropped: too many events are waiting to be written")
            return
        identity = (regarding["metadata"]["uid"], event.type, event.reason, event.note)
        now, never = self._clock(), float("-inf")
        seen, written = self._known.pop(identity, (never, never))
        is_due = now - seen >= REPETITION_WINDOW or now - written >= REFRESH_INTERVAL
        self._known[identity] = now, now if is_due else written
        if len(self._known) > MAX_KNOWN:
            self._known.popitem(last=False)
        if is_due:
            self._queue.put_nowait((identity, self._object(regarding, event)))

    async def run(self) -> Never:
        """Write events until cancelled; after a failure the next repetition is written."""
        while True:
            identity, event = await self._queue.get()
            try:
                await self._client.create(EVENT, event)
            except (ApiError, NotLeadingError) as error:
                LOG.debug("an event was not written: %s", error)
                self._known.pop(identity, None)
            finally:
                self._queue.task_done()

    async def flush(self) -> None:
        """Wait until all recorded events are written; `run` must be running."""
        await self._queue.join()

    def _object(self, regarding: JsonObject, event: Event) -> JsonObject:
        about = regarding["metadata"]
        named = {
            key: about[key]
            for key in ("name", "namespace", "uid", "resourceVersion")
            if about.get(key)
        }
        metadata = {
            "name": f"{about['name'][:220]}.{secrets.token_hex(8)}",
            "namespace": about.get("namespace") or "default",
        }
        return {
            "metadata": metadata,
            "eventTime": micro_time(datetime.now(UTC)),
            "reportingController": REPORTER,
            "reportingInstance": self._instance[:128],
            "action": "Reconcile",
            "reason": event.reason,
            "regarding": {
                "apiVersion": regarding["apiVersion"],
                "kind": regarding["kind"],
                **named,
            },
            "note": event.note[:MAX_NOTE],
            "type": event.type,
        }
