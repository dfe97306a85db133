"""Events of events.k8s.io/v1: told in the background, repeated ones as one series, never in a reconcile's way."""

import asyncio
import logging
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Never

from controller.runtime.leader import NotLeadingError
from controller.runtime.moments import micro_time
from controller.runtime.plan import Event
from kube.client import Client
from kube.errors import ApiError
from kube.resource import Resource

LOG = logging.getLogger("gatewright.events")

EVENT = Resource("events.k8s.io", "v1", "events", "Event")
REPORTER = "gatewright.io/controller"
QUEUE = 1000
REMEMBERED = 4096
SERIES_SECONDS = 360.0  # a repetition within six minutes belongs to the series
REFRESH_SECONDS = 1800.0  # how often a long series is written again
BURST = 25  # events about one object, and one more each
REFILL_SECONDS = 300.0
NOTE_LIMIT = 1024

Object = dict[str, Any]
Identity = tuple[str, ...]  # what two occurrences of one event have in common


@dataclass(slots=True)
class _Series:
    name: str
    namespace: str
    count: int
    seen_at: float
    written_at: float


@dataclass(slots=True)
class _Allowance:
    left: float
    at: float


class Recorder:
    """Tells people about objects, through the API server."""

    def __init__(
        self,
        client: Client,
        instance: str,
        *,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._client = client
        self._instance = instance
        self._clock = clock
        self._now = now
        self._series: OrderedDict[Identity, _Series] = OrderedDict()
        self._allowances: OrderedDict[str, _Allowance] = OrderedDict()
        self._queue: asyncio.Queue[tuple[Identity, Object]] = asyncio.Queue(QUEUE)

    def tell(self, regarding: Object, event: Event, *, action: str = "Reconcile") -> None:
        """Tell of something that happened to an object; dropped rather than waited for."""
        about = regarding["metadata"]
        identity = (about["uid"], event.type, event.reason, action, event.note)
        now = self._clock()
        series = self._series.get(identity)
        if series is not None and now - series.seen_at < SERIES_SECONDS:
            self._series.move_to_end(identity)
            series.count += 1
            series.seen_at = now
            if series.count == 2 or now - series.written_at >= REFRESH_SECONDS:
                series.written_at = now
                self._put(identity, self._repeated(series))
        elif self._is_allowed(about["uid"], now):
            name, namespace = f"{about['name'][:220]}.{secrets.token_hex(8)}", about.get("namespace") or "default"
            self._series[identity] = _Series(name, namespace, 1, now, now)
            if len(self._series) > REMEMBERED:
                self._series.popitem(last=False)
            self._put(identity, self._first(regarding, event, action, name, namespace))

    async def run(self) -> Never:
        """Write events until cancelled."""
        while True:
            identity, object = await self._queue.get()
            try:
                await self._write(identity, object)
            finally:
                self._queue.task_done()

    async def flush(self) -> None:
        """Wait until all that was told is written; `run` must be running."""
        await self._queue.join()

    async def _write(self, identity: Identity, object: Object) -> None:
        """Write an event, or how often it was repeated; what cannot be written is told anew the next time."""
        try:
            if "regarding" in object:
                await self._client.create(EVENT, object)
            else:
                about = object["metadata"]
                await self._client.patch(EVENT, about["name"], {"series": object["series"]}, about["namespace"])
        except (ApiError, NotLeadingError) as error:
            LOG.debug("an event was not written: %s", error)
            self._series.pop(identity, None)

    def _put(self, identity: Identity, object: Object) -> None:
        try:
            self._queue.put_nowait((identity, object))
        except asyncio.QueueFull:
            self._series.pop(identity, None)
            LOG.warning("an event was dropped: too many wait to be written")

    def _is_allowed(self, uid: str, now: float) -> bool:
        """Take one from an object's allowance."""
        allowance = self._allowances.setdefault(uid, _Allowance(BURST, now))
        self._allowances.move_to_end(uid)
        if len(self._allowances) > REMEMBERED:
            self._allowances.popitem(last=False)
        allowance.left = min(BURST, allowance.left + (now - allowance.at) / REFILL_SECONDS)
        allowance.at = now
        if allowance.left < 1:
            return False
        allowance.left -= 1
        return True

    def _first(self, regarding: Object, event: Event, action: str, name: str, namespace: str) -> Object:
        about = regarding["metadata"]
        named = {key: about[key] for key in ("name", "namespace", "uid", "resourceVersion") if about.get(key)}
        return {
            "apiVersion": EVENT.api_version,
            "kind": EVENT.kind,
            "metadata": {"name": name, "namespace": namespace},
            "eventTime": micro_time(self._now()),
            "reportingController": REPORTER,
            "reportingInstance": self._instance[:128],
            "action": action,
            "reason": event.reason,
            "regarding": {"apiVersion": regarding["apiVersion"], "kind": regarding["kind"], **named},
            "note": event.note[:NOTE_LIMIT],
            "type": event.type,
        }

    def _repeated(self, series: _Series) -> Object:
        return {
            "metadata": {"name": series.name, "namespace": series.namespace},
            "series": {"count": series.count, "lastObservedTime": micro_time(self._now())},
        }
