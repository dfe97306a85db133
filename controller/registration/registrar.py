"""Keeps the two webhook configurations as `registration` says.

They are installed empty, so nothing is sent to a webhook that is not there yet; they are filled once one answers. From
then on the rules follow the policies, and the caBundle follows the certificate authority. A configuration that somebody
deleted stays deleted, unless this process makes them itself: deleting them is how one gets out of trouble.
"""

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
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
from controller.registration.probe import ProbeError, probe
from controller.runtime.cache import Cache, Caches
from controller.runtime.controller import Controller
from controller.runtime.expectations import Expectations
from controller.runtime.metrics import Metrics
from controller.runtime.sources import always
from controller.runtime.types import Request, Result
from kube.client import Client
from kube.resource import Resource
from webhook.engine import Engine

FIELD_MANAGER = "gatewright-controller"
PROBE_AGAIN = timedelta(seconds=5)
REPAIR_SECONDS = 30.0  # no more than one repair in this time: whoever keeps undoing them is not fought

LOG = logging.getLogger("gatewright.registration")


class HasEngine(Protocol):
    """Whatever knows the policies in force; None until they are loaded."""

    engine: Engine | None


@dataclass(frozen=True, slots=True)
class Written:
    """The last write of a configuration: when, what was wanted, and what the API server made of it."""

    at: float
    wanted: list[Object]
    answered: list[Object]


class Registrar:
    """The reconciler of both configurations. Whoever loads new policies adds `request` to its controller."""

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
        makes_them: bool = False,
        timeouts: Timeouts = Timeouts(),  # noqa: B008  frozen
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take where the webhook is and what vouches for it; `ca_bundle=None` leaves the caBundle to somebody else.

        `makes_them`: a configuration that is not there is made.
        """
        self.request = Request(None, name)
        self.caches = {resource: caches.one(resource, name) for resource in (VALIDATING, MUTATING)}
        self._expectations = Expectations()
        self._client = client
        self._at = at
        self._policies = policies
        self._ca_bundle = ca_bundle
        self._excluded_namespaces = tuple(excluded_namespaces)
        self._makes_them = makes_them
        self._timeouts = timeouts
        self._clock = clock
        self._written: dict[Resource, Written] = {}
        self._problem = ""

    def controller(self, metrics: Metrics, also: Iterable[Cache] = ()) -> Controller:
        """Return the controller that runs it; the changes of further caches wake it too."""
        controller = Controller(
            "registration", reconcile=self.reconcile, metrics=metrics, workers=1, expectations=self._expectations
        )
        for cache in (*self.caches.values(), *also):
            controller.watch(cache, always(self.request))
        controller.add(self.request)
        return controller

    async def reconcile(self, request: Request) -> Result:
        """Fill and repair what is not as it should be."""
        del request
        waits = [await self._keep(resource) for resource in self.caches]
        return Result(requeue_after=min(filter(None, waits), default=None))

    async def _keep(self, resource: Resource) -> timedelta | None:
        """Write one configuration if it needs it; return when to look again if that cannot be done now."""
        stored = self.caches[resource].get(self.request.name)
        trusted = self._ca_bundle() if self._ca_bundle else next(filter(None, published(stored)), None)
        if (
            (engine := self._policies.engine) is None
            or (stored is None and not self._makes_them)
            or (trusted is None and self._ca_bundle is not None)
        ):
            return None  # whatever brings what is missing wakes us
        address = Address(self._at, trusted, self._timeouts)
        both = registration(self.request.name, engine, address, self._excluded_namespaces, active=trusted is not None)
        wanted = next(each["webhooks"] for each in both if each["kind"] == resource.kind)
        found = _ours(stored)
        if found == wanted:
            return None
        if (before := self._written.get(resource)) is not None and before.wanted == wanted:
            if found == before.answered:  # the API server has words of its own for it
                return None
            if (wait := before.at + REPAIR_SECONDS - self._clock()) > 0:
                return timedelta(seconds=wait)
        is_new = not any(webhook["rules"] for webhook in found)
        if is_new and trusted is not None and not await self._answers(address.url, trusted):
            return PROBE_AGAIN
        await self._write(resource, stored, wanted)
        return None

    async def _write(self, resource: Resource, stored: Object | None, wanted: list[Object]) -> None:
        """Put our webhooks in the place of those that stand there.

        Not by server-side apply, which would leave in force what somebody added: a matchCondition that is never true.
        """
        name, metadata = self.request.name, {"name": self.request.name}
        if stored is None:
            made = {"metadata": metadata, "webhooks": wanted}
            answer = await self._client.create(resource, made, field_manager=FIELD_MANAGER)
        else:
            others = [webhook for webhook in stored.get("webhooks") or [] if not _is_ours(webhook)]
            version = {"resourceVersion": stored["metadata"]["resourceVersion"]}
            patch = {"metadata": version, "webhooks": others + wanted}
            answer = await self._client.patch(resource, name, patch, field_manager=FIELD_MANAGER)
        self._written[resource] = Written(self._clock(), wanted, _ours(answer))
        self._expectations.wrote(self.request, self.caches[resource], name, int(answer["metadata"]["resourceVersion"]))
        LOG.info("registered", extra={"fields": {"kind": resource.kind, "webhooks": [each["name"] for each in wanted]}})

    async def _answers(self, url: str, trusted: bytes) -> bool:
        try:
            await probe(url, trusted)
        except ProbeError as error:
            if str(error) != self._problem:
                LOG.warning("not registered yet: no webhook answers", extra={"fields": {"error": str(error)}})
            self._problem = str(error)
            return False
        self._problem = ""
        return True


def _is_ours(webhook: Object) -> bool:
    return str(webhook["name"]).endswith(f".{DOMAIN}")


def _ours(configuration: Object | None) -> list[Object]:
    """Return our webhooks of a stored configuration."""
    return list(filter(_is_ours, (configuration or {}).get("webhooks") or []))
