"""Says in the status of each policy object and exception whether it is in force, and why not."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from config.faults import FaultsError
from controller.runtime.caches import Cache
from controller.runtime.conditions import READY, condition, dated
from controller.runtime.controller import Controller
from controller.runtime.metrics import Metrics
from controller.runtime.result import Request, Result
from controller.runtime.wakes import primary
from kube.client import Client
from webhook.engine import BoundPolicy
from webhook.engine.exceptions import BoundException
from webhook.engine.policy_set import Catalogue, bind, check_exception, document_of

FIELD_MANAGER = "gatewright-controller"

Object = dict[str, Any]


class PolicyStatuses:
    """The reconciler of one kind of policy object. It judges as the webhook does, by the same code."""

    def __init__(
        self,
        client: Client,
        cache: Cache,
        catalogue: Catalogue,
        policies: Callable[[], Sequence[BoundPolicy]],
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Take the policies that exceptions can be from as a function: they change."""
        self._client = client
        self._cache = cache
        self._catalogue = catalogue
        self._policies = policies
        self._now = now

    def controller(self, metrics: Metrics) -> Controller:
        """Return the controller that runs it."""
        controller = Controller(self._cache.resource.kind.lower(), reconcile=self.reconcile, metrics=metrics, workers=1)
        controller.watch(self._cache, primary, periodic=True)
        return controller

    async def reconcile(self, request: Request) -> Result:
        """Write the condition Ready where it says something else."""
        stored = self._cache.get(request.key)
        if stored is None:
            return Result()
        now = self._now()
        ready, look_again = self.judged(stored, now)
        generation = stored["metadata"]["generation"]
        old = stored.get("status") or {}
        new = {
            "observedGeneration": generation,
            "conditions": dated([ready], old.get("conditions") or [], generation=generation, now=now),
        }
        if new != old:
            named = {"name": request.name, "namespace": request.namespace, "uid": stored["metadata"]["uid"]}
            metadata = {key: value for key, value in named.items() if value is not None}
            await self._client.apply(
                self._cache.resource,
                {"metadata": metadata, "status": new},
                field_manager=FIELD_MANAGER,
                force=True,
                subresource="status",
            )
        return Result(requeue_after=look_again)

    def judged(self, stored: Object, now: datetime) -> tuple[Object, timedelta | None]:
        """Return the condition Ready of an object, and when that will change by itself."""
        try:
            made = bind(document_of(stored), self._catalogue)
            if isinstance(made, BoundException):
                return self._judged_exception(made, now)
        except FaultsError as error:
            return condition(READY, False, "Invalid", str(error)), None
        return condition(READY, True, "InForce"), None

    def _judged_exception(self, exception: BoundException, now: datetime) -> tuple[Object, timedelta | None]:
        if now >= exception.spec.expires:
            return condition(READY, False, "Expired", f"it ended at {exception.spec.expires.isoformat()}"), None
        check_exception(exception, self._policies())
        return condition(READY, True, "InForce"), exception.spec.expires - now
