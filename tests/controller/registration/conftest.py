"""A cluster with the reconcilers of certificates and registration, and a webhook with the issued pair."""

import asyncio
import base64
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from controller.registration.certificates import CertificateNames, Certificates
from controller.registration.configurations import MUTATING, VALIDATING, Service
from controller.registration.conversion import CRD, Conversion
from controller.registration.registrar import Registrar
from controller.runtime.manager import Manager
from gatewright.testing.fake_apiserver import FakeApiServer
from kube.client import Client
from kube.endpoint import Endpoint
from kube.resource import Resource
from tests.waiting import WITHIN
from webhook.engine import BoundPolicy, Engine, Params, Policy
from webhook.engine.match import Match
from webhook.server.admission import AdmissionHandler
from webhook.server.certificate_pairs import PairFiles
from webhook.server.connections import Connections, ServerConfig
from webhook.server.metrics import WebhookMetrics
from webhook.server.serve import listening
from webhook.server.tls import ServingCertificate

NAMESPACE = "gatewright-system"
NAME = "gatewright"
CONVERTED = "voteconfigs.voting.schoolofdevops.com"  # a CRD that the controller may update
NAMES = CertificateNames(
    NAMESPACE,
    "gatewright-ca",
    "gatewright-webhook-tls",
    NAME,
    ("localhost", "gatewright-webhook", "gatewright-webhook.gatewright-system.svc"),
    (CONVERTED,),
)


def bound(name: str, *, mutates: bool = False, kinds: Any = ("Deployment",)) -> BoundPolicy:
    """Return a policy in force that judges some kinds and reports nothing."""
    function = {"mutate" if mutates else "validate": lambda request, params: iter(())}
    policy = Policy(name, Params, kinds=kinds, **function)
    return BoundPolicy(name, policy, Params(), Match(()), frozenset({"Deny"}), fails_closed=True)


@dataclass
class Policies:
    """The engine in force."""

    engine: Engine | None = field(
        default_factory=lambda: Engine([bound("a"), bound("b", mutates=True)])
    )


class Clock:
    """The clock of repair intervals."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        """Return the time in seconds."""
        return self.now

    def go_on(self) -> None:
        """Advance the clock beyond REPAIR_INTERVAL, so that parts written before may be repaired."""
        self.now += 31


@dataclass
class System:
    """The running reconcilers, their cluster, and the webhook."""

    certificates: Certificates
    registrar: Registrar
    conversion: Conversion
    policies: Policies
    connections: Connections
    certificate: ServingCertificate
    metrics: WebhookMetrics
    directory: Path
    changed: asyncio.Event
    wake: Callable[[], None]
    clock: "Clock"

    def secret(self, name: str) -> dict[str, bytes]:
        """Return the data of a Secret as the reconcilers see it."""
        cache = (
            self.certificates.ca_cache if name == NAMES.ca_secret else self.certificates.tls_cache
        )
        stored = cache.get(f"{NAMESPACE}/{name}") or {}
        return {key: base64.b64decode(value) for key, value in (stored.get("data") or {}).items()}

    def webhooks(self, resource: Resource) -> list[dict[str, Any]]:
        """Return the webhooks of a configuration as the reconcilers see it."""
        return (self.registrar.caches[resource, NAME].get(NAME) or {}).get("webhooks") or []

    async def until(self, holds: Callable[[], Any]) -> None:
        """Wait until a condition holds in the reconcilers' caches."""
        async with asyncio.timeout(WITHIN):
            while not holds():
                self.changed.clear()
                await self.changed.wait()

    def registered(self) -> bool:
        """Return whether both configurations have rules."""
        return all(
            any(each["rules"] for each in self.webhooks(resource))
            for resource in (VALIDATING, MUTATING)
        )

    def stanza(self) -> dict[str, Any]:
        """Return the conversion stanza of the CRD as the reconcilers see it."""
        return (self.conversion.caches[CRD, CONVERTED].get(CONVERTED) or {"spec": {}})["spec"].get(
            "conversion"
        ) or {}

    def mount(self) -> None:
        """Give the webhook the pair of its Secret, as the kubelet does."""
        for key in ("tls.crt", "tls.key"):
            (self.directory / key).write_bytes(self.secret(NAMES.tls_secret)[key])
        self.certificate.refresh()


@asynccontextmanager
async def working(
    endpoint: Endpoint,
    directory: Path,
    *,
    creates: bool = False,
    own_certificates: bool = True,
    by_service: bool = False,
) -> AsyncIterator[System]:
    """Run the reconcilers and the webhook, without mounted certificate files."""
    runtime = Manager(endpoint, CollectorRegistry(), identity="test")
    policies, clock = Policies(), Clock()
    metrics = WebhookMetrics(CollectorRegistry())
    certificate = ServingCertificate(
        PairFiles(directory / "tls.crt", directory / "tls.key"), metrics
    )
    config = ServerConfig(host="127.0.0.1", port=0)
    async with listening(
        config, AdmissionHandler(policies, metrics, {}), certificate, metrics
    ) as connections:
        at: Service | str = f"https://localhost:{connections.port}"
        if by_service:
            at = Service(NAMESPACE, "gatewright-webhook", connections.port)
        certificates = Certificates(runtime.client, runtime.caches, NAMES)
        registrar = Registrar(
            runtime.client,
            runtime.caches,
            NAME,
            at,
            lambda: policies.engine,
            ca_bundle=certificates.ca_bundle if own_certificates else None,
            excluded_namespaces=[NAMESPACE],
            creates=creates,
            clock=clock,
        )
        conversion = Conversion(
            runtime.client,
            runtime.caches,
            [CONVERTED],
            NAME,
            at,
            ca_bundle=certificates.ca_bundle if own_certificates else None,
            clock=clock,
        )
        runtime.add(conversion.controller(runtime.metrics, also=[certificates.ca_cache]))
        registering = registrar.controller(runtime.metrics, also=[certificates.ca_cache])
        runtime.add(registering)
        if own_certificates:
            runtime.add(certificates.controller(runtime.metrics))
        changed, stop = asyncio.Event(), asyncio.Event()
        for cache in runtime.caches:
            cache.subscribe(lambda change: changed.set())
        running = asyncio.create_task(runtime.run(stop))
        await runtime.caches.wait_synced()
        try:
            yield System(
                certificates,
                registrar,
                conversion,
                policies,
                connections,
                certificate,
                metrics,
                directory,
                changed,
                lambda: registering.add(registrar.request),
                clock,
            )
        finally:
            stop.set()
            await running


async def install(client: Client) -> None:
    """Create two empty configurations, as the chart does."""
    for resource in (VALIDATING, MUTATING):
        await client.create(resource, {"metadata": {"name": NAME}})


@pytest.fixture
async def server() -> AsyncIterator[FakeApiServer]:
    """A fake API server with the installation's namespace."""
    async with FakeApiServer() as fake:
        fake.create(
            Resource("", "v1", "namespaces", "Namespace", namespaced=False),
            {"metadata": {"name": NAMESPACE}},
        )
        yield fake


@pytest.fixture
async def client(server) -> AsyncIterator[Client]:
    """A client of this API server."""
    async with Client(server.endpoint) as connected:
        yield connected


@pytest.fixture
async def system(server, client, tmp_path) -> AsyncIterator[System]:
    """The running reconcilers, with a webhook that has its serving pair."""
    await install(client)
    async with working(server.endpoint, tmp_path) as running:
        await running.until(lambda: running.secret(NAMES.tls_secret))
        running.mount()
        running.wake()
        await running.until(running.registered)
        yield running
