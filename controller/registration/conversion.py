"""The reconciler of `spec.conversion` of each CRD that has several versions.

A CRD is installed with strategy None: the API server then changes only the `apiVersion`, and the
schemas of these kinds are written so that no data is lost. Once a webhook answers, the strategy
becomes Webhook, with its address and the CA bundle that verifies it. From then on the old versions
need a webhook; the stored version never does. No other field of the CRD is written, so that
applying the CRD again neither reverts this nor conflicts with it.
"""

import base64
import logging
import time
from collections.abc import Callable, Iterable, Mapping

from controller.registration.configurations import (
    VALIDATING,
    Service,
    WebhookClientConfig,
)
from controller.registration.upkeep import DesiredPart, Upkeep
from controller.runtime.cache import Cache, Caches
from controller.runtime.controller import Controller
from controller.runtime.metrics import ControllerMetrics
from kube.client import Client
from kube.errors import NotFound
from kube.resource import CRD, JsonObject, Resource

PATH = "/convert"

LOG = logging.getLogger("gatewright.conversion")


class Conversion(Upkeep):
    """The reconciler of the conversion stanzas."""

    name = "conversion"
    purpose = "not converted"
    written = "objects are converted by the webhook"

    def __init__(
        self,
        client: Client,
        caches: Caches,
        crds: Iterable[str],
        configuration: str,
        at: Service | str,
        *,
        ca_bundle: Callable[[], bytes | None] | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take the CRDs' names; without `ca_bundle`, it is read from `configuration`."""
        super().__init__(client, caches, [(CRD, crd) for crd in crds], at, ca_bundle, clock)
        self._cache = caches.one(VALIDATING, configuration)
        self._configuration = configuration

    def controller(self, metrics: ControllerMetrics, also: Iterable[Cache] = ()) -> Controller:
        """Return the controller that runs it.

        Changes of the configuration enqueue the request too.
        """
        return super().controller(metrics, (self._cache, *also))

    def plan_part(self, resource: Resource, stored: JsonObject | None) -> DesiredPart | None:
        """Return the stanza; None without a CRD or a CA bundle."""
        trusted = self.trusted_bundle(self._cache.get(self._configuration))
        if stored is None or not trusted:
            return None
        address = WebhookClientConfig(self.at, trusted)
        return DesiredPart(stanza(address), address, self.part(stored).get("strategy") != "Webhook")

    def part(self, stored: JsonObject | None) -> JsonObject:
        """Return the stanza of a stored CRD."""
        return (stored or {}).get("spec", {}).get("conversion") or {}

    def patch(self, stored: JsonObject, part: JsonObject) -> JsonObject:
        """Replace the stanza, and no other field."""
        client_config = {"service": None, "url": None, **part["webhook"]["clientConfig"]}
        return {
            "spec": {
                "conversion": {
                    **part,
                    "webhook": {**part["webhook"], "clientConfig": client_config},
                }
            }
        }


def stanza(address: WebhookClientConfig) -> JsonObject:
    """Return `spec.conversion` of a CRD whose objects the webhook at an address converts."""
    return {
        "strategy": "Webhook",
        "webhook": {
            "clientConfig": address.client_config(PATH),
            "conversionReviewVersions": ["v1"],
        },
    }


def trusted_by(crd: Mapping[str, JsonObject] | None) -> list[bytes]:
    """Return the CA bundle of the conversion webhook in a stored CRD, as a list of at most one."""
    conversion = (crd or {}).get("spec", {}).get("conversion") or {}
    webhook = conversion.get("webhook") or {}
    bundle = (webhook.get("clientConfig") or {}).get("caBundle")
    return [base64.b64decode(bundle)] if bundle else []


async def without_conversion(client: Client, name: str) -> None:
    """Set strategy None, so that the API server never calls a webhook that no longer exists."""
    try:
        await client.patch(
            CRD, name, {"spec": {"conversion": {"strategy": "None", "webhook": None}}}
        )
    except NotFound:
        LOG.debug("there is no CRD %s", name)
