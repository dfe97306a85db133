"""Keeps the conversion stanza of each CRD of several versions: where its objects are converted, and whom to trust.

A CRD is installed without one, which is strategy None: the API server then changes nothing but the `apiVersion`, and
the schemas of such a kind are made so that nothing is lost by it. Once a webhook answers, the strategy becomes Webhook,
with its address and the bundle that verifies it. From then on the old versions need a webhook; the stored one never
does. Nothing else of a CRD is written, so whoever applies it anew takes nothing back and meets no conflict.
"""

import base64
import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from controller.registration.configurations import VALIDATING, Address, Object, Service, published
from controller.registration.probe import ProbeError, probe
from controller.registration.registrar import FIELD_MANAGER, PROBE_AGAIN, REPAIR_SECONDS
from controller.runtime.cache import Cache, Caches
from controller.runtime.controller import Controller
from controller.runtime.expectations import Expectations
from controller.runtime.metrics import Metrics
from controller.runtime.sources import always, itself
from controller.runtime.types import Request, Result
from kube.client import Client
from kube.errors import NotFound
from kube.resource import Resource

CRD = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False)
PATH = "/convert"

LOG = logging.getLogger("gatewright.conversion")


@dataclass(frozen=True, slots=True)
class Written:
    """The last write of a stanza: when, what was wanted, and what the API server made of it."""

    at: float
    wanted: Object
    answered: Object


class Conversion:
    """The reconciler of the stanzas."""

    def __init__(
        self,
        client: Client,
        caches: Caches,
        names: Iterable[str],
        configuration: str,
        at: Service | str,
        *,
        ca_bundle: Callable[[], bytes | None] | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take the names of the CRDs, where the webhook is, and what vouches for it.

        `ca_bundle=None`: somebody else fills in that of the webhook `configuration`, and it is taken from there.
        """
        self.caches = {name: caches.one(CRD, name) for name in names}
        self._configuration = caches.one(VALIDATING, configuration)
        self._name = configuration
        self._expectations = Expectations()
        self._client = client
        self._at = at
        self._ca_bundle = ca_bundle
        self._clock = clock
        self._written: dict[str, Written] = {}
        self._problem = ""

    def controller(self, metrics: Metrics, also: Sequence[Cache] = ()) -> Controller:
        """Return the controller that runs it; the changes of further caches wake it too."""
        controller = Controller(
            "conversion", reconcile=self.reconcile, metrics=metrics, workers=1, expectations=self._expectations
        )
        for name, cache in self.caches.items():
            controller.watch(cache, itself)
            for other in (self._configuration, *also):
                controller.watch(other, always(Request(None, name)))
        return controller

    async def reconcile(self, request: Request) -> Result:
        """Fill in or repair the stanza of one CRD."""
        stored = self.caches[request.name].get(request.name)
        trusted = self._trusted()
        if stored is None or not trusted:
            return Result()  # whatever brings what is missing wakes us
        address = Address(self._at, trusted)
        found, wanted = stored["spec"].get("conversion") or {}, stanza(address)
        if found == wanted:
            return Result()
        if (before := self._written.get(request.name)) is not None and before.wanted == wanted:
            if found == before.answered:  # the API server has words of its own for it
                return Result()
            if (wait := before.at + REPAIR_SECONDS - self._clock()) > 0:
                return Result(requeue_after=timedelta(seconds=wait))
        is_new = found.get("strategy") != wanted["strategy"]
        if is_new and not await self._answers(address.url, trusted):
            return Result(requeue_after=PROBE_AGAIN)
        await self._write(request, stored, wanted)
        return Result()

    def _trusted(self) -> bytes | None:
        if self._ca_bundle is not None:
            return self._ca_bundle()
        return next(filter(None, published(self._configuration.get(self._name))), None)

    async def _write(self, request: Request, stored: Object, wanted: Object) -> None:
        """Put the stanza in the place of the one that was read, and touch nothing else."""
        client_config = {"service": None, "url": None, **wanted["webhook"]["clientConfig"]}
        conversion = {**wanted, "webhook": {**wanted["webhook"], "clientConfig": client_config}}
        patch = {
            "metadata": {"resourceVersion": stored["metadata"]["resourceVersion"]},
            "spec": {"conversion": conversion},
        }
        answer = await self._client.patch(CRD, request.name, patch, field_manager=FIELD_MANAGER)
        self._written[request.name] = Written(self._clock(), wanted, answer["spec"]["conversion"])
        version = int(answer["metadata"]["resourceVersion"])
        self._expectations.wrote(request, self.caches[request.name], request.name, version)
        LOG.info("objects are converted by the webhook", extra={"fields": {"crd": request.name}})

    async def _answers(self, url: str, trusted: bytes) -> bool:
        try:
            await probe(url, trusted)
        except ProbeError as error:
            if str(error) != self._problem:
                LOG.warning("not converted yet: no webhook answers", extra={"fields": {"error": str(error)}})
            self._problem = str(error)
            return False
        self._problem = ""
        return True


def stanza(address: Address) -> Object:
    """Return `spec.conversion` of a CRD whose objects are converted at an address."""
    return {
        "strategy": "Webhook",
        "webhook": {"clientConfig": address.client_config(PATH), "conversionReviewVersions": ["v1"]},
    }


def trusted_by(crd: Mapping[str, Object] | None) -> list[bytes]:
    """Return the bundle that a stored CRD tells the API server to trust, as `published` does for webhooks."""
    webhook = ((crd or {}).get("spec", {}).get("conversion") or {}).get("webhook") or {}
    bundle = (webhook.get("clientConfig") or {}).get("caBundle")
    return [base64.b64decode(bundle)] if bundle else []


async def without_conversion(client: Client, name: str) -> None:
    """Let the API server convert by itself again: nobody is sent to a webhook that is gone."""
    try:
        await client.patch(CRD, name, {"spec": {"conversion": {"strategy": "None", "webhook": None}}})
    except NotFound:
        LOG.debug("there is no CRD %s", name)
