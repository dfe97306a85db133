"""Reconciles the API server's references to the webhook.

They are written once a webhook answers, and restored whenever another writer changes them.
"""

import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, ClassVar

from controller.reconcilers.resources import SERVICE
from controller.registration.configurations import Service, WebhookClientConfig, published_bundles
from controller.registration.probe import ProbeError, probe
from controller.runtime.apply import FIELD_MANAGER
from controller.runtime.cache import Cache, Caches
from controller.runtime.controller import Controller
from controller.runtime.expectations import Expectations
from controller.runtime.metrics import ControllerMetrics
from controller.runtime.sources import always
from controller.runtime.types import ReconcileRequest, Result
from kube.client import Client
from kube.errors import NotFound
from kube.resource import JsonObject, Resource

PROBE_AGAIN = timedelta(seconds=2)
# Until then, webhook pods that do not answer are assumed to be starting.
EXPECTED_TO_ANSWER = timedelta(minutes=2)
# Minimum time between two writes of the same content. An edit by hand is repaired soon, also the
# second time; after MAX_QUICK_REPAIRS it is a fight with another writer, and the time doubles with
# each write: each write of a CRD ends all watches of its objects.
QUICK_INTERVAL = timedelta(seconds=2)
MAX_QUICK_REPAIRS = 5
REPAIR_INTERVAL = timedelta(seconds=30)
MAX_REPAIR_INTERVAL = timedelta(minutes=10)

CONTESTED = (
    "%s %s is changed again and again by %s; it is restored after 30 s, then after twice the time "
    "with each change, up to ten minutes"
)
OTHER_RELEASE = "another release of Gatewright"

LOG = logging.getLogger("gatewright.registration")


@dataclass(frozen=True, slots=True)
class DesiredPart:
    """The desired content of a part of an object, and the webhook's address in it."""

    part: Any
    address: WebhookClientConfig
    is_new: bool
    """Whether nothing refers to the webhook yet: then it must answer before this is written."""


@dataclass(frozen=True, slots=True)
class LastWrite:
    """The last write: its time (monotonic seconds), the desired part, and the stored part.

    `repairs` is how often this content was written again since another writer changed it.
    """

    at: float
    desired: Any
    stored: Any
    repairs: int = 0

    @property
    def interval(self) -> timedelta:
        """The time before the same content may be written again."""
        if self.repairs < MAX_QUICK_REPAIRS:
            return QUICK_INTERVAL
        doubled: timedelta = REPAIR_INTERVAL * 2 ** min(self.repairs - MAX_QUICK_REPAIRS, 10)
        return min(doubled, MAX_REPAIR_INTERVAL)


class Upkeep(ABC):
    """Base class of reconcilers of a part of an object: webhooks, or a CRD's conversion."""

    name: ClassVar[str]
    """The controller's name."""
    purpose: ClassVar[str]
    """The beginning of the log line `… yet: no webhook answers`."""
    written: ClassVar[str]
    """The message of the log line after a write."""

    def __init__(
        self,
        client: Client,
        caches: Caches,
        objects: Iterable[tuple[Resource, str]],
        at: Service | str,
        ca_bundle: Callable[[], bytes | None] | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take the objects, the address of the webhook and the CA bundle that verifies it.

        `ca_bundle=None`: another controller (cert-manager) fills in the caBundle of the webhook
        configurations.
        """
        self.request = ReconcileRequest(None, self.name)
        self.caches = {each: caches.one(*each) for each in objects}
        self.at = at
        self.ca_bundle = ca_bundle
        self._client = client
        self._clock = clock
        self._expectations = Expectations()
        self._written: dict[tuple[Resource, str], LastWrite] = {}
        self.problem = ""
        """Why no webhook answered the last probe; empty if one did, or none was needed."""
        self._unanswered_since: float | None = None
        self._logged: tuple[int, str] | None = None

    @abstractmethod
    def plan_part(self, resource: Resource, stored: JsonObject | None) -> DesiredPart | None:
        """Return the desired part.

        None while an input is missing; its event enqueues the request.
        """

    @abstractmethod
    def part(self, stored: JsonObject | None) -> Any:
        """Return the part of a stored object."""

    @abstractmethod
    def patch(self, stored: JsonObject, part: Any) -> JsonObject:
        """Return the merge patch that replaces the part of a stored object."""

    def controller(self, metrics: ControllerMetrics, also: Iterable[Cache] = ()) -> Controller:
        """Return the controller that runs it.

        Changes in the caches `also` enqueue the request too.
        """
        controller = Controller(
            self.name,
            reconcile=self.reconcile,
            metrics=metrics,
            workers=1,
            expectations=self._expectations,
        )
        for cache in (*self.caches.values(), *also):
            controller.watch(cache, always(self.request))
        controller.add(self.request)
        return controller

    def trusted_bundle(self, configuration: JsonObject | None) -> bytes | None:
        """Return the CA bundle that verifies the webhook: this process's own, or the published one.

        None as long as there is none.
        """
        if self.ca_bundle is not None:
            return self.ca_bundle()
        return next(filter(None, published_bundles(configuration)), None)

    async def reconcile(self, request: ReconcileRequest) -> Result:
        """Write and repair all parts."""
        del request
        waits = [await self._reconcile_part(*each) for each in self.caches]
        return Result(requeue_after=min(filter(None, waits), default=None))

    async def _reconcile_part(self, resource: Resource, name: str) -> timedelta | None:
        """Write one part if it is due. Otherwise return after how long to check again."""
        cache, before = self.caches[resource, name], self._written.get((resource, name))
        stored = cache.get(name)
        part, desired = self.part(stored), self.plan_part(resource, stored)
        if desired is None or part == desired.part:
            return None
        repairs = 0
        if before is not None and before.desired == desired.part:
            if part == before.stored:  # the API server's normalized form of the desired part
                return None
            passed = timedelta(seconds=self._clock() - before.at)
            if passed < before.interval:
                return before.interval - passed
            repairs = before.repairs + 1 if passed < 2 * MAX_REPAIR_INTERVAL else 1
        if desired.is_new and not await self._answers(desired.address):
            return PROBE_AGAIN
        writer = await self._writer(resource, name) if repairs == MAX_QUICK_REPAIRS else None
        metadata: JsonObject = {"name": name}
        if stored is None:
            object = {"metadata": metadata} | self.patch({}, desired.part)
            answer = await self._client.create(resource, object, field_manager=FIELD_MANAGER)
        else:
            metadata["resourceVersion"] = stored["metadata"]["resourceVersion"]
            patch = {"metadata": metadata} | self.patch(stored, desired.part)
            answer = await self._client.patch(resource, name, patch, field_manager=FIELD_MANAGER)
        last = LastWrite(self._clock(), desired.part, self.part(answer), repairs)
        self._written[resource, name] = last
        self._expectations.wrote(self.request, cache, name, answer)
        fields = {"kind": resource.kind, "name": name}
        if writer is not None:
            LOG.warning(CONTESTED, resource.kind, name, writer, extra={"fields": fields})
        elif repairs < MAX_QUICK_REPAIRS:
            LOG.info(self.written, extra={"fields": fields})
        return None

    async def _writer(self, resource: Resource, name: str) -> str:
        """Return who last wrote an object beside this process, by its managedFields."""
        try:
            stored = await self._client.get(resource, name)
        except NotFound:
            return OTHER_RELEASE
        times: dict[str, str] = {}
        for entry in stored["metadata"].get("managedFields") or []:
            manager, time = str(entry.get("manager")), str(entry.get("time"))
            times[manager] = max(time, times.get(manager, ""))
        last = max(times.values(), default="")
        others = [f'"{each}"' for each in times if times[each] == last and each != FIELD_MANAGER]
        # Another release writes under the same name as this one.
        return " or ".join(sorted(others)) or OTHER_RELEASE

    async def _answers(self, address: WebhookClientConfig) -> bool:
        try:
            cluster_ip = await self._cluster_ip(address.at)
            await probe(address.url, address.ca_bundle or b"", cluster_ip)
        except ProbeError as error:
            self.problem = str(error)
            self._log_problem()
            return False
        self.problem, self._unanswered_since, self._logged = "", None, None
        return True

    def _log_problem(self) -> None:
        """Log why no webhook answers, once for each reason; a warning after EXPECTED_TO_ANSWER."""
        if self._unanswered_since is None:
            self._unanswered_since = self._clock()
        lasts = timedelta(seconds=self._clock() - self._unanswered_since)
        level = logging.INFO if lasts < EXPECTED_TO_ANSWER else logging.WARNING
        if (level, self.problem) != self._logged:
            fields = {"error": self.problem}
            LOG.log(level, "%s yet: no webhook answers", self.purpose, extra={"fields": fields})
        self._logged = (level, self.problem)

    async def _cluster_ip(self, at: Service | str) -> str | None:
        """Return the address of the webhook's Service; None where it is reached by a URL."""
        if isinstance(at, str):
            return None
        about = f"Service {at.namespace}/{at.name}"
        try:
            service = await self._client.get(SERVICE, at.name, at.namespace)
        except NotFound:
            raise ProbeError(f"{about} does not exist") from None
        address = service["spec"].get("clusterIP")
        if address in {None, "", "None"}:
            raise ProbeError(f"{about} has no cluster IP, so the API server cannot call it")
        return str(address)
