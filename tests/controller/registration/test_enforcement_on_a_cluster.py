"""Whatever keeps a policy from being enforced on a real API server is noticed by the dry runs that measure it."""

import asyncio
import base64
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from certs import issue_ca, issue_serving
from config.documents import Document
from controller.registration import enforcement
from controller.registration.configurations import VALIDATING, WebhookClientConfig, registration
from controller.registration.enforcement import EnforcementProbe
from controller.registration.enforcement_answers import Enforcement
from gatewright.commands.certs import write_pairs
from gatewright.processes.denied_requests import denied_requests
from kube.client import Client
from kube.credentials import load
from tests.controlplane.plane import ControlPlane
from tests.waiting import eventually
from webhook.engine import Engine
from webhook.engine.bound import BoundPolicy
from webhook.policy_sets.catalogue import catalogue
from webhook.policy_sets.policy_set import read
from webhook.server.admission import AdmissionHandler
from webhook.server.certificate_pairs import PairFiles
from webhook.server.connections import ServerConfig
from webhook.server.metrics import WebhookMetrics
from webhook.server.serve import listening
from webhook.server.tls import ServingCertificate

pytestmark = pytest.mark.controlplane("etcd", "kube-apiserver")

TITLE = "limits"


@dataclass
class Policies:
    """What one process has in force."""

    engine: Engine | None = None


def policies_in(namespace: str, action: str = "Deny", failure_policy: str = "Fail") -> Engine:
    """Return an engine with two policies in one namespace."""
    common = {
        "match": {"any": [{"namespaces": [namespace]}]},
        "validationActions": [action],
        "failurePolicy": failure_policy,
    }
    specs = {TITLE: {"policy": "replica-limits"}, "tags": {"policy": "image-tags"}}
    documents = [
        Document(
            "policies.yaml",
            {
                "apiVersion": "gatewright.io/v1alpha1",
                "kind": "ClusterAdmissionPolicy",
                "metadata": {"name": name},
                "spec": {**spec, **common},
            },
        )
        for name, spec in specs.items()
    ]
    return Engine(read(documents, catalogue()).policies)


class Measured:
    """A webhook in this process, registered at the API server, and the probe that measures it."""

    def __init__(
        self, client: Client, namespace: str, address: WebhookClientConfig, webhook: Policies
    ) -> None:
        self.client, self.namespace, self.address = client, namespace, address
        self.webhook = webhook
        self.name = f"proof-{namespace}"
        self.leader, self.now = Policies(policies_in(namespace)), 0.0
        self.probe = EnforcementProbe(
            client,
            lambda: self.leader.engine,
            denied_requests(tuple),
            tuple,
            CollectorRegistry(),
            clock=lambda: self.now,
        )

    async def register(self, **changes: Any) -> None:
        """Write the registration of the leader's policies, with changes of its webhooks."""
        assert self.leader.engine is not None
        wanted, _ = registration(self.leader.engine, ()).configurations(self.name, self.address)
        wanted["webhooks"] = [{**each, **changes} for each in wanted["webhooks"]]
        await self.client.apply(VALIDATING, wanted, field_manager="test", force=True)

    async def measure(self) -> Enforcement | None:
        """Measure twice, as a result must be confirmed, at the times at which it is due."""
        for seconds in (61.0, 10.0):
            self.now += seconds
            await self.probe.reconcile(enforcement.REQUEST)
        return self.probe.of(TITLE)

    async def until(self, status: str, reason: str) -> None:
        """Measure until this is the result: the API server observes a registration with delay."""

        async def is_so() -> bool:
            found = await self.measure()
            return found is not None and found[:2] == (status, reason)

        await eventually(is_so, every=0.2)


@pytest.fixture
async def measured(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> AsyncIterator[Measured]:
    """A webhook whose policies are enforced in the test's namespace."""
    async with AsyncExitStack() as stack:
        found = await serving(control_plane, namespace, tmp_path, stack)
        await found.until("True", "Denied")
        yield found


async def serving(
    plane: ControlPlane, namespace: str, directory: Path, stack: AsyncExitStack
) -> Measured:
    """Start the webhook, and register it."""
    now = datetime.now(UTC)
    ca = issue_ca("test", now)
    write_pairs(directory, ca, issue_serving(ca, [], ["127.0.0.1"], now))
    metrics = WebhookMetrics(CollectorRegistry())
    pair = PairFiles(directory / "tls.crt", directory / "tls.key")
    policies = Policies(policies_in(namespace))
    certificate = ServingCertificate(pair, metrics)
    connections = await stack.enter_async_context(
        listening(
            ServerConfig(host="127.0.0.1", port=0),
            AdmissionHandler(policies, metrics, {}),
            certificate,
            metrics,
        )
    )
    client = await stack.enter_async_context(Client(await load(plane.kubeconfig)))
    url = f"https://127.0.0.1:{connections.port}"
    found = Measured(client, namespace, WebhookClientConfig(url, ca.certificate), policies)
    await found.register()
    stack.push_async_callback(client.delete, VALIDATING, found.name)
    return found


OTHER = {"apiGroups": ["batch"], "apiVersions": ["v1"], "resources": ["jobs"], "operations": ["*"]}
NOWHERE = {"url": "https://127.0.0.1:1"}
FOREIGN_CA = base64.b64encode(issue_ca("foreign", datetime.now(UTC)).certificate).decode()


def foreign(address: WebhookClientConfig) -> dict[str, str]:
    """Return the client configuration with the CA bundle of another."""
    return {**address.client_config("/validate"), "caBundle": FOREIGN_CA}


# By name: changes of each webhook, from the webhook's address, and the result.
SABOTAGES: dict[str, tuple[Callable[[WebhookClientConfig], dict[str, Any]], str, str]] = {
    "rules about other kinds": (lambda _: {"rules": [OTHER]}, "False", "Admitted"),
    "a foreign matchCondition": (
        lambda _: {"matchConditions": [{"name": "never", "expression": "false"}]},
        "False",
        "Admitted",
    ),
    "a namespaceSelector that excludes": (
        lambda _: {"namespaceSelector": {"matchLabels": {"no": "such"}}},
        "False",
        "Admitted",
    ),
    "an objectSelector that excludes": (
        lambda _: {"objectSelector": {"matchLabels": {"no": "such"}}},
        "False",
        "Admitted",
    ),
    "failurePolicy Ignore in an outage": (
        lambda _: {"failurePolicy": "Ignore", "clientConfig": NOWHERE},
        "False",
        "Admitted",
    ),
    "failurePolicy Fail in an outage": (
        lambda _: {"clientConfig": NOWHERE},
        "Unknown",
        "InternalError",
    ),
    "a wrong caBundle": (
        lambda address: {"clientConfig": foreign(address)},
        "Unknown",
        "InternalError",
    ),
    "a wrong caBundle with failurePolicy Ignore": (
        lambda address: {"clientConfig": foreign(address), "failurePolicy": "Ignore"},
        "False",
        "Admitted",
    ),
}


async def test_each_sabotage_of_the_registration_is_noticed(measured: Measured) -> None:
    """Each is seen by the second dry run, 10 s after the first; the repair by the next one."""
    for changes, status, reason in SABOTAGES.values():
        await measured.register(**changes(measured.address))
        await measured.until(status, reason)
        await measured.register()
        await measured.until("True", "Denied")
    await measured.client.delete(VALIDATING, measured.name)
    await measured.until("False", "Admitted")
    await measured.register()
    await measured.until("True", "Denied")


async def test_a_webhook_with_other_policies_is_noticed(measured: Measured) -> None:
    """It only warns, or denies for another policy alone, although the leader has the policy in force."""
    engine = measured.webhook.engine
    assert engine is not None
    measured.webhook.engine = policies_in(measured.namespace, action="Warn")
    await measured.until("False", "Admitted")
    measured.webhook.engine = Engine(each for each in engine.policies if each.name != TITLE)
    await measured.until("False", "Admitted")
    measured.webhook.engine = Engine(map(_renamed, engine.policies))
    await measured.until("False", "NotDenied")
    measured.webhook.engine = engine
    await measured.until("True", "Denied")


def _renamed(policy: BoundPolicy) -> BoundPolicy:
    return replace(policy, name=f"other-{policy.name}")


async def test_an_api_server_without_the_plugin_is_noticed(
    own_control_plane: Callable[..., ControlPlane], tmp_path: Path
) -> None:
    """Registered webhooks are never called."""
    plane = await asyncio.to_thread(
        own_control_plane,
        parts=("etcd", "kube-apiserver"),
        api_server_flags=["--disable-admission-plugins=ValidatingAdmissionWebhook"],
    )
    plane.create_namespace("proof")
    async with AsyncExitStack() as stack:
        found = await serving(plane, "proof", tmp_path, stack)
        await found.until("False", "Admitted")
