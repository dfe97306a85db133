"""Events of events.k8s.io/v1, written in the background: repetitions become a series."""

import asyncio
import logging
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
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
MAX_SERIES = 1024
SERIES_WINDOW = 360.0  # seconds: a repetition within six minutes belongs to the series
REFRESH_INTERVAL = 1800.0  # seconds between two writes of a long series
MAX_NOTE = 1024

Identity = tuple[str, ...]  # the same for all occurrences of an event


@dataclass(slots=True)
class _Series:
    event: JsonObject
    count: int
    seen_at: float
    written_at: float
    is_stored: bool = False


class EventRecorder:
    """Records events about objects."""

    def __init__(
        self, client: Client, instance: str, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._client = client
        self._instance = instance
        self._clock = clock
        self._series: OrderedDict[Identity, _Series] = OrderedDict()
        self._queue: asyncio.Queue[tuple[Identity, _Series]] = asyncio.Queue(MAX_QUEUED)

    def record(self, regarding: JsonObject, event: Event) -> None:
        """Record an event about an object; it is dropped if too many are waiting."""
        if self._queue.full():
            LOG.warning("event dropped: too many events are waiting to be written")
            return
        identity = (regarding["metadata"]["uid"], event.type, event.reason, event.note)
        now = self._clock()
        series = self._series.get(identity)
        if series is not None and now - series.seen_at < SERIES_WINDOW:
            self._series.move_to_end(identity)
            series.count += 1
            series.seen_at = now
            if series.count > 2 and now - series.written_at < REFRESH_INTERVAL:
                return
            series.written_at = now
        else:
            series = self._series[identity] = _Series(self._object(regarding, event), 1, now, now)
            if len(self._series) > MAX_SERIES:
                self._series.popitem(last=False)
        self._queue.put_nowait((identity, series))

    async def run(self) -> Never:
        """Write events until cancelled; after a failure the next one starts a new series."""
        while True:
            identity, series = await self._queue.get()
            try:
                await self._write(series)
            except (ApiError, NotLeadingError) as error:
                LOG.debug("an event was not written: %s", error)
                self._series.pop(identity, None)
            finally:
                self._queue.task_done()

    async def flush(self) -> None:
        """Wait until all recorded events are written; `run` must be running."""
        await self._queue.join()

    async def _write(self, series: _Series) -> None:
        """Write an event, or the count of its series."""
        repeated = {
            "series": {"count": series.count, "lastObservedTime": micro_time(datetime.now(UTC))}
        }
        if series.is_stored:
            about = series.event["metadata"]
            await self._client.patch(EVENT, about["name"], repeated, about["namespace"])
        else:
            await self._client.create(EVENT, series.event | (repeated if series.count > 1 else {}))
            series.is_stored = True

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
