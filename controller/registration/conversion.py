"""The reconciler of the conversion stanza of each CRD of several versions: its strategy, address and caBundle.

A CRD is installed with strategy None: the API server then changes nothing but the `apiVersion`, and the schemas of such
a kind lose nothing by it. Once a webhook answers, the strategy becomes Webhook, with its address and the bundle that
verifies it. From then on the old versions need a webhook; the stored one never does. No other field of the CRD is
written, so that applying it again changes nothing back and meets no conflict.
"""

import base64
import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from controller.registration.configurations import VALIDATING, Address, Object, Service, published
from controller.registration.upkeep import NOW, Upkeep
from controller.runtime.apply import FIELD_MANAGER
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


class Conversion:
    """The reconciler of the conversion stanzas."""

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
        """Take the names of the CRDs, the address of the webhook, and the CA bundle that verifies it.

        `ca_bundle=None`: another controller fills in that of the webhook `configuration`, and it is taken from there.
        """
        self.caches = {name: caches.one(CRD, name) for name in names}
        self._configuration = caches.one(VALIDATING, configuration)
        self._name = configuration
        self._expectations = Expectations()
        self._client = client
        self._at = at
        self._ca_bundle = ca_bundle
        self._upkeep = Upkeep("not converted", clock)

    def controller(self, metrics: Metrics, also: Sequence[Cache] = ()) -> Controller:
        """Return the controller that runs it; changes in the caches `also` enqueue all requests too."""
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
            return Result()  # the event that brings what is missing enqueues the request
        address = Address(self._at, trusted)
        found, wanted = stored["spec"].get("conversion") or {}, stanza(address)
        is_new = found.get("strategy") != wanted["strategy"]
        due = await self._upkeep.due(request.name, found, wanted, probe_at=address if is_new else None)
        if due == NOW:
            await self._write(request, stored, wanted)
            return Result()
        return Result(requeue_after=due)

    def _trusted(self) -> bytes | None:
        if self._ca_bundle is not None:
            return self._ca_bundle()
        return next(filter(None, published(self._configuration.get(self._name))), None)

    async def _write(self, request: Request, stored: Object, wanted: Object) -> None:
        """Replace the stanza that was read, and no other field."""
        client_config = {"service": None, "url": None, **wanted["webhook"]["clientConfig"]}
        conversion = {**wanted, "webhook": {**wanted["webhook"], "clientConfig": client_config}}
        patch = {
            "metadata": {"resourceVersion": stored["metadata"]["resourceVersion"]},
            "spec": {"conversion": conversion},
        }
        answer = await self._client.patch(CRD, request.name, patch, field_manager=FIELD_MANAGER)
        self._upkeep.wrote(request.name, wanted, answer["spec"]["conversion"])
        self._expectations.wrote(request, self.caches[request.name], request.name, answer)
        LOG.info("objects are converted by the webhook", extra={"fields": {"crd": request.name}})


def stanza(address: Address) -> Object:
    """Return `spec.conversion` of a CRD whose objects the webhook at an address converts."""
    return {
        "strategy": "Webhook",
        "webhook": {"clientConfig": address.client_config(PATH), "conversionReviewVersions": ["v1"]},
    }


def trusted_by(crd: Mapping[str, Object] | None) -> list[bytes]:
    """Return the CA bundle of the conversion webhook in a stored CRD, as a list of at most one."""
    webhook = ((crd or {}).get("spec", {}).get("conversion") or {}).get("webhook") or {}
    bundle = (webhook.get("clientConfig") or {}).get("caBundle")
    return [base64.b64decode(bundle)] if bundle else []


async def without_conversion(client: Client, name: str) -> None:
    """Set strategy None again, so that the API server never calls a webhook that no longer exists."""
    try:
        await client.patch(CRD, name, {"spec": {"conversion": {"strategy": "None", "webhook": None}}})
    except NotFound:
        LOG.debug("there is no CRD %s", name)
