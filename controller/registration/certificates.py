"""The reconciler of the two certificate Secrets: the authority and the serving pair."""

import base64
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from certs import KeyPair, check, issue_ca, issue_serving
from controller.reconcilers.resources import SECRET
from controller.registration.configurations import MUTATING, VALIDATING, published_bundles
from controller.registration.conversion import trusted_by
from controller.registration.rotation import plan, read_authority, read_pair, successor
from controller.runtime.cache import Cache, Caches
from controller.runtime.controller import Controller
from controller.runtime.expectations import Expectations
from controller.runtime.metrics import ControllerMetrics
from controller.runtime.sources import always
from controller.runtime.types import ReconcileRequest, Result, TerminalError
from kube.client import Client
from kube.resource import CRD, JsonObject

LABELS = {
    "app.kubernetes.io/name": "gatewright",
    "app.kubernetes.io/managed-by": "gatewright-controller",
}

LOG = logging.getLogger("gatewright.certificates")


@dataclass(frozen=True, slots=True)
class CertificateNames:
    """Names of the Secrets and the webhook configurations, and DNS names of the webhook.

    `converted` are the CRDs whose objects the webhook converts.
    """

    namespace: str
    ca_secret: str
    tls_secret: str
    configuration: str
    dns_names: tuple[str, ...]
    converted: tuple[str, ...] = ()


def service_names(service: str, namespace: str) -> tuple[str, ...]:
    """Return the DNS names of a Service inside the cluster."""
    return (
        f"{service}.{namespace}.svc",
        f"{service}.{namespace}.svc.cluster.local",
        f"{service}.{namespace}",
        service,
    )


class Certificates:
    """The reconciler of both Secrets."""

    def __init__(self, client: Client, caches: Caches, names: CertificateNames) -> None:
        self.request = ReconcileRequest(names.namespace, names.tls_secret)
        self.ca_cache = caches.one(SECRET, names.ca_secret, names.namespace)
        self.tls_cache = caches.one(SECRET, names.tls_secret, names.namespace)
        self._configurations = [
            caches.one(resource, names.configuration) for resource in (VALIDATING, MUTATING)
        ]
        self._crds = {name: caches.one(CRD, name) for name in names.converted}
        self._expectations = Expectations()
        self._client = client
        self._names = names

    def controller(self, metrics: ControllerMetrics) -> Controller:
        """Return the controller that runs it."""
        controller = Controller(
            "certificates",
            reconcile=self.reconcile,
            metrics=metrics,
            workers=1,
            expectations=self._expectations,
        )
        for cache in (self.ca_cache, self.tls_cache, *self._configurations, *self._crds.values()):
            controller.watch(cache, always(self.request))
        controller.add(self.request)
        return controller

    def ca_bundle(self) -> bytes | None:
        """Return the CA bundle that verifies the webhook; None as long as there is no authority."""
        authority = read_authority(
            self._stored_secret(self.ca_cache, self._names.ca_secret), datetime.now(UTC)
        )
        return authority.bundle if authority else None

    async def reconcile(self, request: ReconcileRequest) -> Result:
        """Do the next step of `rotation.plan`."""
        del request
        now = datetime.now(UTC)
        stored = self._stored_secret(self.ca_cache, self._names.ca_secret)
        served = self._stored_secret(self.tls_cache, self._names.tls_secret)
        authority = read_authority(stored, now)
        trusted = [*self._published_bundles()]
        todo = plan(authority, read_pair(served), trusted, self._names.dns_names[0], now)
        if todo.authority:
            pair = issue_ca(f"{self._names.ca_secret}.{self._names.namespace}", now)
            new = successor(pair, authority, trusted, now)
            await self._write(self.ca_cache, self._names.ca_secret, stored, _data(pair, new.bundle))
        elif authority is not None and todo.bundle is not None:
            await self._write(
                self.ca_cache, self._names.ca_secret, stored, _data(authority.pair, todo.bundle)
            )
        elif authority is not None and todo.serving:
            pair = issue_serving(authority.pair, self._names.dns_names, [], now)
            # An invalid pair would be issued again in the next reconcile, and so on.
            check(pair, authority.bundle, self._names.dns_names[0], now)
            await self._write(self.tls_cache, self._names.tls_secret, served, _data(pair))
        else:
            return Result(requeue_after=todo.look_again)
        # One step at a time: the next one follows once the cache has this write.
        return Result(requeue_after=timedelta())

    def _published_bundles(self) -> Iterator[bytes]:
        """Yield every CA bundle by which the API server verifies the webhook."""
        for cache in self._configurations:
            yield from published_bundles(cache.get(self._names.configuration))
        for name, cache in self._crds.items():
            yield from trusted_by(cache.get(name))

    def _stored_secret(self, cache: Cache, name: str) -> JsonObject | None:
        return cache.get(f"{self._names.namespace}/{name}")

    async def _write(
        self, cache: Cache, name: str, stored: JsonObject | None, data: dict[str, str]
    ) -> None:
        """Create a Secret, or replace the one that was read.

        Raises TerminalError if Gatewright did not create it.
        """
        if stored is None:
            metadata = {"name": name, "namespace": self._names.namespace, "labels": LABELS}
            secret = {"type": "kubernetes.io/tls", "metadata": metadata, "data": data}
            answer = await self._client.create(SECRET, secret)
        elif LABELS.items() <= (stored["metadata"].get("labels") or {}).items():
            answer = await self._client.replace(SECRET, stored | {"data": data})
        else:
            raise TerminalError(
                f"Secret {self._names.namespace}/{name} was not created by Gatewright and holds "
                "no usable certificate. "
                "Delete it, or choose another name (--ca-secret, --tls-secret)."
            )
        self._expectations.wrote(self.request, cache, f"{self._names.namespace}/{name}", answer)
        LOG.info(
            "secret written", extra={"fields": {"secret": name, "namespace": self._names.namespace}}
        )


def _data(pair: KeyPair, bundle: bytes | None = None) -> dict[str, str]:
    data = {"tls.crt": pair.certificate, "tls.key": pair.key} | (
        {"ca.crt": bundle} if bundle else {}
    )
    return {key: base64.b64encode(value).decode() for key, value in data.items()}
