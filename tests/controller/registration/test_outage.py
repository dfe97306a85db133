"""With the webhook down, a real API server rejects the requests that a policy would judge, and no others."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from certs import issue_ca
from config.documents import Document
from controller.registration.configurations import (
    MUTATING,
    VALIDATING,
    WebhookClientConfig,
    registration,
)
from kube.client import Client
from kube.credentials import load
from kube.errors import NotFound, ServerError
from kube.resource import CRD, JsonObject, Resource
from tests.controller.registration.test_scope import bound
from tests.controlplane.plane import ControlPlane
from tests.waiting import eventually
from tests.webhook.policy_sets.on_a_cluster.in_force import crd
from webhook.engine import BoundPolicy, Engine
from webhook.policy_sets.catalogue import catalogue
from webhook.policy_sets.policy_set import in_force, read
from webhook.server.policy_files import policy_set_of

pytestmark = pytest.mark.controlplane("etcd", "kube-apiserver")

NAMESPACE = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
CONFIG_MAP = Resource("", "v1", "configmaps", "ConfigMap")
DEPLOYMENT = Resource("apps", "v1", "deployments", "Deployment")
ROLE = Resource("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", namespaced=False)
ISSUER = Resource("example.com", "v1", "issuers", "Issuer", namespaced=False)
TEMPLATE = {
    "metadata": {"labels": {"a": "b"}},
    "spec": {"containers": [{"name": "app", "image": "app:1"}]},
}
SPEC = {"selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE}


class Cluster:
    """An API server that has a registration, and no webhook."""

    def __init__(self, plane: ControlPlane, client: Client) -> None:
        self.plane = plane
        self.client = client

    async def register(self, *policies: BoundPolicy, name: str = "test") -> None:
        """Register a webhook at an address without a listener."""
        address = WebhookClientConfig(
            "https://127.0.0.1:1", issue_ca("test", datetime.now(UTC)).certificate
        )
        both = registration(Engine(policies), ()).configurations(name, address)
        for resource, wanted in zip((VALIDATING, MUTATING), both, strict=True):
            await self.client.create(resource, wanted)

    async def unregister(self, name: str) -> None:
        """Remove both configurations."""
        for resource in (VALIDATING, MUTATING):
            await self.client.delete(resource, name)

    async def namespace(self, name: str, **labels: str) -> None:
        """Create a namespace."""
        await self.client.create(NAMESPACE, {"metadata": {"name": name, "labels": labels}})

    async def is_refused(
        self, namespace: str, resource: Resource = DEPLOYMENT, **fields: Any
    ) -> bool:
        """Return whether an object cannot be created since the webhook does not answer."""
        object: JsonObject = {"metadata": {"generateName": "a-", "namespace": namespace}, **fields}
        try:
            await self.client.create(resource, object, dry_run=True)
        except ServerError as error:
            return "failed calling webhook" in error.message
        return False

    async def until(self, namespace: str, *, refused: bool) -> None:
        """Wait until the API server has observed the previous writes."""

        async def is_so() -> bool:
            return await self.is_refused(namespace, spec=SPEC) is refused

        await eventually(is_so)


@pytest.fixture
async def cluster(empty_plane: ControlPlane) -> AsyncIterator[Cluster]:
    """An API server of the test's own, with some namespaces."""
    async with Client(await load(empty_plane.kubeconfig)) as client:
        found = Cluster(empty_plane, client)
        await found.namespace("production")
        await found.namespace("staging")
        await found.namespace("shop", environment="production")
        yield found


async def test_an_outage_hurts_the_namespaces_under_policy_only(cluster: Cluster) -> None:
    """Production, by name or by label, fails closed; staging works; new labels of a namespace take effect at once."""
    policies = policy_set_of([Path("config/policies/production.yaml")], catalogue())
    await cluster.register(*in_force(policies, catalogue(), "gatewright-system"))
    await cluster.until("production", refused=True)
    assert await cluster.is_refused("shop", spec=SPEC)
    assert not await cluster.is_refused("staging", spec=SPEC)
    assert not await cluster.is_refused("production", CONFIG_MAP)
    await cluster.client.patch(
        NAMESPACE, "staging", {"metadata": {"labels": {"environment": "production"}}}
    )
    await cluster.until("staging", refused=True)
    await cluster.client.patch(NAMESPACE, "shop", {"metadata": {"labels": {"environment": "test"}}})
    await cluster.until("shop", refused=False)


async def test_a_policy_about_a_cluster_scoped_custom_kind_is_asked(cluster: Cluster) -> None:
    """The policy names the kind alone; only the cluster has its definition, and with it the scope."""
    rules = {
        "match": {"any": [{"kinds": ["example.com/v1/Issuer"]}]},
        "validations": [{"expression": "false", "message": "no issuers"}],
    }
    document = {
        "apiVersion": "gatewright.io/v1alpha1",
        "kind": "ClusterAdmissionPolicy",
        "metadata": {"name": "issuers"},
        "spec": rules,
    }
    policies = read([Document("policies.yaml", document)], catalogue())
    await cluster.client.create(CRD, crd("Issuer", "issuers", "Cluster", {"type": "object"}))
    await cluster.register(*in_force(policies, catalogue()))

    async def is_asked() -> bool:
        with suppress(NotFound):  # until the API server serves the kind
            return await cluster.is_refused("", ISSUER)
        return False

    await eventually(is_asked)


async def test_match_conditions_are_those_of_the_api_server(cluster: Cluster) -> None:
    """One registration has globs, excluded users and groups, and cluster-scoped objects."""
    exclude = {"users": ["break-glass"], "groups": ["ops-*"], "serviceAccounts": ["ci/*"]}
    clauses = [
        {"namespaces": ["prod*"]},
        {"namespaceSelector": {"matchLabels": {"environment": "production"}}},
    ]
    await cluster.register(
        bound({"any": clauses, "exclude": exclude}),
        bound({"any": clauses, "exclude": exclude}, kinds=("ClusterRole", "Namespace")),
    )
    await cluster.until("production", refused=True)
    assert await cluster.is_refused("shop", spec=SPEC)
    assert not await cluster.is_refused("staging", spec=SPEC)
    role = {"metadata": {"name": "it"}, "rules": []}
    await cluster.client.create(ROLE, role, dry_run=True)
    await cluster.client.create(NAMESPACE, {"metadata": {"name": "test"}}, dry_run=True)
    for metadata in (
        {"name": "product"},
        {"name": "test", "labels": {"environment": "production"}},
    ):
        with pytest.raises(ServerError, match="failed calling webhook"):
            await cluster.client.create(NAMESPACE, {"metadata": metadata}, dry_run=True)
    for user, groups in (
        ("break-glass", ()),
        ("x", ("ops-1", "system:masters")),
        ("system:serviceaccount:ci:bot", ()),
    ):
        identity = ["--as", user, *(f"--as-group={group}" for group in (*groups, "system:masters"))]
        command = (
            "create",
            "deployment",
            "web",
            "--image=app:1",
            "-n",
            "production",
            "--dry-run=server",
            *identity,
        )
        assert (await asyncio.to_thread(cluster.plane.kubectl, *command)).returncode == 0


KINDS_OF_TENANTS = {
    CONFIG_MAP: {},
    Resource("", "v1", "secrets", "Secret"): {},
    Resource("", "v1", "serviceaccounts", "ServiceAccount"): {},
    DEPLOYMENT: {"spec": SPEC},
}


async def test_with_any_number_of_tenants_only_judged_requests_are_sent(cluster: Cluster) -> None:
    """Production with 4, 40 and 400 tenants, each with a policy about one kind.

    Of all requests in namespaces with and without policies, those are sent that a policy judges.
    """
    policies = policy_set_of([Path("config/policies/production.yaml")], catalogue())
    platform = in_force(policies, catalogue(), "gatewright-system")
    kinds = list(KINDS_OF_TENANTS)
    for number in range(6):
        await cluster.namespace(f"tenant-{number}")
    await cluster.namespace("tenant-prod", environment="production")
    for number in (4, 40, 400):
        tenants = {f"tenant-{each}": kinds[each % len(kinds)] for each in range(number)}
        tenants["tenant-prod"] = CONFIG_MAP
        await cluster.register(
            *platform,
            *(
                bound(kinds=(resource.kind,), namespace=namespace)
                for namespace, resource in tenants.items()
            ),
            name=f"with-{number}",
        )
        await cluster.until("production", refused=True)
        sent, judged = set(), set()
        for namespace in (
            "staging",
            "production",
            "tenant-prod",
            *(f"tenant-{n}" for n in range(6)),
        ):
            for resource, fields in KINDS_OF_TENANTS.items():
                of_platform = resource == DEPLOYMENT and namespace in ("production", "tenant-prod")
                if of_platform or tenants.get(namespace) == resource:
                    judged.add((namespace, resource.kind))
                if await cluster.is_refused(namespace, resource, **fields):
                    sent.add((namespace, resource.kind))
        assert sent == judged
        await cluster.unregister(f"with-{number}")
        await cluster.until("production", refused=False)


async def test_the_api_server_accepts_the_longest_registrations(cluster: Cluster) -> None:
    """Ten thousand names, globs, values and tenants, and as many labels as there are webhooks."""
    clauses = [
        {"namespaces": [f"group{each:05}-*" for each in range(10_000)] + ["prod*"]},
        *({"namespaceSelector": {"matchLabels": {f"team-{each}": "x"}}} for each in range(30)),
    ]
    await cluster.register(
        bound({"any": clauses}),
        *(bound(namespace=f"tenant-{each}", kinds=("ConfigMap",)) for each in range(10_000)),
    )
    await cluster.until("production", refused=True)
    assert not await cluster.is_refused("staging", spec=SPEC)
