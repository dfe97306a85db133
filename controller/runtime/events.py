"""Events of events.k8s.io/v1, written in the background; repetitions are one series."""

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Never

from controller.runtime.leader import NotLeadingError, micro_time
from controller.runtime.plan import Event
from kube.client import Client
from kube.errors import ApiError, NotFound
from kube.resource import JsonObject, Resource

LOG = logging.getLogger("gatewright.events")

EVENT = Resource("events.k8s.io", "v1", "events", "Event")
REPORTER = "gatewright.io/controller"
MAX_QUEUED = 1000
MAX_KNOWN = 1024
# Seconds after which a repetition is an event of its own; longer than the longest back-off.
REPETITION_WINDOW = 360.0
# Seconds until a series is written again. A Normal event is a change, such as Ready after a fight;
# a Warning is repeated by retries. The API server deletes events after an hour.
REFRESH_INTERVALS = {"Normal": 60.0, "Warning": 1800.0}
MAX_NOTE = 1024

Identity = tuple[str, ...]  # the same for all occurrences of an event


@dataclass(slots=True)
class _Series:
    """The occurrences of an event: the stored object, how many, and when (monotonic)."""

    event: JsonObject
    count: int
    seen: float
    written: float


class EventRecorder:
    """Records events about objects."""

    def __init__(
        self,
        client: Client,
        instance: str,
        *,
        reporter: str = REPORTER,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take the name of this process, and that of its program: the event's source."""
        self._client = client
        self._instance = instance
        self._reporter = reporter
        self._clock = clock
        self._known: OrderedDict[Identity, _Series] = OrderedDict()
        self._queue: asyncio.Queue[tuple[Identity, _Series]] = asyncio.Queue(MAX_QUEUED)

    def record(self, regarding: JsonObject, event: Event) -> None:
        """Record an event about an object.

        A Normal one is dropped if half of the queue is full, so that Warnings have the rest.
        """
        if event.type == "Normal" and self._queue.qsize() >= MAX_QUEUED // 2:
            return
        if self._queue.full():
            LOG.warning("event dropped: too many events are waiting to be written")
            return
        identity = (regarding["metadata"]["uid"], event.type, event.reason, event.note)
        now = self._clock()
        series = self._known.pop(identity, None)
        if series is None or now - series.seen >= REPETITION_WINDOW:
            series = _Series(self._object(regarding, event), 0, now, now)
        series.count, series.seen = series.count + 1, now
        self._known[identity] = series
        if len(self._known) > MAX_KNOWN:
            self._known.popitem(last=False)
        if series.count <= 2 or now - series.written >= REFRESH_INTERVALS[event.type]:
            series.written = now
            self._queue.put_nowait((identity, series))

    async def run(self) -> Never:
        """Write events until cancelled; after a failure the next repetition is written."""
        while True:
            identity, series = await self._queue.get()
            try:
                await self._write(series)
            except (ApiError, NotLeadingError) as error:
                LOG.debug("an event was not written: %s", error)
                self._known.pop(identity, None)
            finally:
                self._queue.task_done()

    async def _write(self, series: _Series) -> None:
        """Create an event, or add its repetitions; create it again if it has expired."""
        metadata = series.event["metadata"]
        if "uid" in metadata:
            times = {"count": series.count, "lastObservedTime": micro_time(datetime.now(UTC))}
            with suppress(NotFound):
                name, namespace = metadata["name"], metadata["namespace"]
                await self._client.patch(EVENT, name, {"series": times}, namespace)
                return
            del metadata["uid"]
        stored = await self._client.create(EVENT, series.event)
        metadata["uid"] = stored["metadata"]["uid"]

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
            # kubectl shows events of this API in the order of their names.
            "name": f"{about['name'][:220].rstrip('-.')}.{time.time_ns():016x}",
            "namespace": about.get("namespace") or "default",
        }
        return {
            "metadata": metadata,
            "eventTime": micro_time(datetime.now(UTC)),
            "reportingController": self._reporter,
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
