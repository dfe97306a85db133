"""The reconciler of both webhook configurations: their content is what `registration` returns.

The chart installs them empty, so that no webhook is called before one answers; then the leader fills them in. From then
on the rules follow the policies, and the caBundle follows the certificate authority. A configuration that was deleted
stays deleted, unless this process creates them: deleting them is the break-glass.
"""

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from typing import Protocol

from controller.registration.configurations import (
    DOMAIN,
    MUTATING,
    VALIDATING,
    Address,
    Object,
    Service,
    Timeouts,
    published,
    registration,
)
from controller.registration.upkeep import NOW, Upkeep
from controller.runtime.apply import FIELD_MANAGER
from controller.runtime.cache import Cache, Caches
from controller.runtime.controller import Controller
from controller.runtime.expectations import Expectations
from controller.runtime.metrics import Metrics
from controller.runtime.sources import always
from controller.runtime.types import Request, Result
from kube.client import Client
from kube.resource import Resource
from webhook.engine import Engine

LOG = logging.getLogger("gatewright.registration")


class HasEngine(Protocol):
    """Holds the policies in force; None until they are loaded."""

    engine: Engine | None


class Registrar:
    """The reconciler of both configurations; `request` is to be added to its controller when policies change."""

    def __init__(
        self,
        client: Client,
        caches: Caches,
        name: str,
        at: Service | str,
        policies: HasEngine,
        *,
        ca_bundle: Callable[[], bytes | None] | None,
        excluded_namespaces: Sequence[str],
        creates: bool = False,
        timeouts: Timeouts = Timeouts(),  # noqa: B008  frozen
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take the address of the webhook and the CA bundle that verifies it.

        `ca_bundle=None`: another controller (cert-manager) fills in the caBundle. `creates`: create a configuration
        that does not exist.
        """
        self.request = Request(None, name)
        self.caches = {resource: caches.one(resource, name) for resource in (VALIDATING, MUTATING)}
        self._expectations = Expectations()
        self._client = client
        self._at = at
        self._policies = policies
        self._ca_bundle = ca_bundle
        self._excluded_namespaces = tuple(excluded_namespaces)
        self._creates = creates
        self._timeouts = timeouts
        self._upkeep = Upkeep("not registered", clock)
        self._wanted: tuple[Engine | None, Address, dict[str, list[Object]]] = (None, Address("", None), {})

    def controller(self, metrics: Metrics, also: Iterable[Cache] = ()) -> Controller:
        """Return the controller that runs it; changes in the caches `also` enqueue the request too."""
        controller = Controller(
            "registration", reconcile=self.reconcile, metrics=metrics, workers=1, expectations=self._expectations
        )
        for cache in (*self.caches.values(), *also):
            controller.watch(cache, always(self.request))
        controller.add(self.request)
        return controller

    async def reconcile(self, request: Request) -> Result:
        """Fill in and repair both configurations."""
        del request
        waits = [await self._keep(resource) for resource in self.caches]
        return Result(requeue_after=min(filter(None, waits), default=None))

    async def _keep(self, resource: Resource) -> timedelta | None:
        """Write one configuration if it needs it; return when to look again if that cannot be done now."""
        stored = self.caches[resource].get(self.request.name)
        trusted = self._ca_bundle() if self._ca_bundle else next(filter(None, published(stored)), None)
        if (
            (engine := self._policies.engine) is None
            or (stored is None and not self._creates)
            or (trusted is None and self._ca_bundle is not None)
        ):
            return None  # the event that brings what is missing enqueues the request
        address = Address(self._at, trusted, self._timeouts)
        wanted, found = self._webhooks(engine, address)[resource.kind], _own(stored)
        is_new = trusted is not None and not any(webhook["rules"] for webhook in found)
        due = await self._upkeep.due(resource, found, wanted, probe_at=address if is_new else None)
        if due == NOW:
            await self._write(resource, stored, wanted)
            return None
        return due

    def _webhooks(self, engine: Engine, address: Address) -> dict[str, list[Object]]:
        """Return the webhooks of each kind of configuration, computed once for an engine and an address."""
        if self._wanted[:2] != (engine, address):
            active, excluded = address.ca_bundle is not None, self._excluded_namespaces
            both = registration(self.request.name, engine, address, excluded, active=active)
            self._wanted = engine, address, {each["kind"]: each["webhooks"] for each in both}
        return self._wanted[2]

    async def _write(self, resource: Resource, stored: Object | None, wanted: list[Object]) -> None:
        """Replace Gatewright's webhooks in a configuration.

        Not by server-side apply: that would leave in force what another writer added, such as a matchCondition that is
        never true.
        """
        name, metadata = self.request.name, {"name": self.request.name}
        if stored is None:
            created = {"metadata": metadata, "webhooks": wanted}
            answer = await self._client.create(resource, created, field_manager=FIELD_MANAGER)
        else:
            others = [webhook for webhook in stored.get("webhooks") or [] if not _is_own(webhook)]
            version = {"resourceVersion": stored["metadata"]["resourceVersion"]}
            patch = {"metadata": version, "webhooks": others + wanted}
            answer = await self._client.patch(resource, name, patch, field_manager=FIELD_MANAGER)
        self._upkeep.wrote(resource, wanted, _own(answer))
        self._expectations.wrote(self.request, self.caches[resource], name, answer)
        LOG.info("registered", extra={"fields": {"kind": resource.kind, "webhooks": [each["name"] for each in wanted]}})


def _is_own(webhook: Object) -> bool:
    return str(webhook["name"]).endswith(f".{DOMAIN}")


def _own(configuration: Object | None) -> list[Object]:
    """Return Gatewright's webhooks of a stored configuration."""
    return list(filter(_is_own, (configuration or {}).get("webhooks") or []))
