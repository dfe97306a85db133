"""`gatewright plan --diff`: the changes in a cluster, without secrets."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest

from config.api.webapp import WebApp
from config.crds import definition
from config.documents import DocumentError, parse_documents
from controller.reconcilers.postgresql import POSTGRESQL
from controller.reconcilers.resources import CLAIM
from controller.reconcilers.webapp import WEBAPP
from controller.runtime.kind import PlannedKind
from controller.runtime.plan import Apply, Observed, Step
from gatewright.plans.children import Parent, Planned, parent_of
from gatewright.plans.differences import Cluster, Difference
from gatewright.testing.fake_apiserver import FakeApiServer
from kube.client import Client
from kube.errors import Unreachable
from kube.resource import Resource
from tests.controller.runtime.conftest import ANYTHING
from webhook.server.cluster_data import NAMESPACES

DEPLOYMENT = Resource("apps", "v1", "deployments", "Deployment")
SERVICE = Resource("", "v1", "services", "Service")
TODAY = datetime(2026, 11, 21, tzinfo=UTC)
SHOP = """\
apiVersion: example.com/v1
kind: WebApp
metadata: {name: shop, namespace: shop}
spec: {replicas: 2, image: registry.company.com/shop:1.4}
"""
DATABASE = """\
apiVersion: database.example.com/v1
kind: PostgreSQL
metadata: {name: data, namespace: shop}
spec: {version: "17", storage: 1Gi}
"""


@pytest.fixture
async def server() -> AsyncIterator[FakeApiServer]:
    """Return an API server with a namespace."""
    async with FakeApiServer() as fake:
        fake.create(NAMESPACES, {"metadata": {"name": "shop"}})
        fake.define(definition(WebApp))
        yield fake


def child(kind: PlannedKind[Any], object: dict[str, Any]) -> Planned:
    """Return a planned child of an object in the namespace shop."""
    write = Apply(object)
    parent = Parent(kind, {"metadata": {"name": "shop", "namespace": "shop"}})
    return Planned(parent, Step("child", [write]), write)


async def printed(server, text):
    """Return the printed lines for each planned object that differs."""
    (document,) = parse_documents(text.encode(), "shop.yaml")
    async with Client(server.endpoint) as client:
        cluster = Cluster(client, {"registry": ""}, TODAY)
        found = [
            list(difference.lines())
            async for difference in cluster.differences(parent_of(document, "default"))
        ]
    return [lines for lines in found if lines]


def owned(server, object, **spec):
    """Return a planned object as a child of the stored WebApp, with other fields in its spec."""
    uid = server.get(WEBAPP.resource, "shop", "shop")["metadata"]["uid"]
    owner = {
        "apiVersion": "example.com/v1",
        "kind": "WebApp",
        "name": "shop",
        "uid": uid,
        "controller": True,
    }
    return object | {
        "metadata": object["metadata"] | {"ownerReferences": [owner]},
        "spec": object["spec"] | spec,
    }


async def test_without_existing_objects_all_are_new(server):
    """Each diff is against nothing, with the object as the API server would store it; nothing is written."""
    deployment, service = await printed(server, SHOP)
    assert deployment[:2] == [
        "--- apps/v1 Deployment shop/shop (there)",
        "+++ apps/v1 Deployment shop/shop (planned)",
    ]
    assert "+  replicas: 2" in deployment
    assert service == [
        "--- v1 Service shop/shop (there)",
        "+++ v1 Service shop/shop (planned)",
        "@@ -0,0 +1,15 @@",
        "+apiVersion: v1",
        "+kind: Service",
        "+metadata:",
        "+  labels:",
        "+    app: shop",
        "+  name: shop",
        "+  namespace: shop",
        "+spec:",
        "+  ports:",
        "+  - name: http",
        "+    port: 8080",
        "+    protocol: TCP",
        "+    targetPort: 8080",
        "+  selector:",
        "+    app: shop",
    ]
    assert not any(each.mutating for each in server.requests.log)


async def test_only_differences_from_existing_objects_are_printed(server):
    """Only changed fields are printed; an object with another owner is kept and reported in one line."""
    (document,) = parse_documents(SHOP.encode(), "shop.yaml")
    server.create(WEBAPP.resource, document.value)
    planned = parent_of(document, "shop").plan(Observed(), TODAY)
    deployment, service = (step.writes[0].object for step in planned.steps)
    server.create(DEPLOYMENT, owned(server, deployment, replicas=5))
    server.create(SERVICE, service)
    changed, note = await printed(server, SHOP)
    assert [line for line in changed[2:] if line[:1] in "+-"] == [
        "-  replicas: 5",
        "+  replicas: 2",
    ]
    assert note == [
        "# v1 Service shop/shop: exists and is not owned by WebApp shop; it is not changed"
    ]
    server.delete(SERVICE, "shop", "shop")
    server.create(SERVICE, owned(server, service))
    assert len(await printed(server, SHOP)) == 1


async def test_the_number_that_an_autoscaler_set_is_no_change(server):
    """A new Deployment has the least number; an existing one keeps its own."""
    autoscaled = SHOP.replace("replicas: 2", "replicas: 1, autoscaling: {min: 2, max: 5}")
    deployment, *_ = await printed(server, autoscaled)
    assert "+  replicas: 2" in deployment
    (document,) = parse_documents(autoscaled.encode(), "shop.yaml")
    server.create(WEBAPP.resource, document.value)
    step = parent_of(document, "shop").plan(Observed(), TODAY).steps[0]
    server.create(DEPLOYMENT, owned(server, step.writes[0].object, replicas=4))
    autoscaler, service = await printed(server, autoscaled)
    assert "HorizontalPodAutoscaler" in autoscaler[0]
    assert "Service" in service[0]


SETTINGS = """\
apiVersion: config.example.com/v1
kind: AppConfig
metadata: {name: settings, namespace: shop}
spec: {application: shop, environment: from-namespace, values: {LEVEL: {default: info, dev: debug}}}
"""


async def test_the_label_of_the_namespace_decides_the_values(server):
    """It is read before anything is planned; without it, the error names the label."""
    with pytest.raises(DocumentError, match="namespace shop tells none"):
        await printed(server, SETTINGS)
    server.change(NAMESPACES, "shop", {"metadata": {"labels": {"environment": "development"}}})
    (config_map,) = await printed(server, SETTINGS)
    assert "+  LEVEL: debug" in config_map


async def test_secrets_are_not_printed(server):
    """Only the keys of a Secret are printed, and whether a value would change."""
    printed_secrets = [lines for lines in await printed(server, DATABASE) if "Secret" in lines[0]]
    assert printed_secrets
    assert all(
        line[1:].endswith("(secret)")
        for lines in printed_secrets
        for line in lines
        if "password" in line
    )
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "x"}}
    secrets = [
        secret | {"data": {"a": "MQ==", "b": "MQ=="}},
        secret | {"data": {"a": "MQ==", "b": "Mg=="}},
    ]
    assert list(Difference(child(POSTGRESQL, secret), *secrets).lines())[2:] == [
        "@@ -1,7 +1,7 @@",
        " apiVersion: v1",
        " data:",
        "   a: (secret)",
        "-  b: (secret)",
        "+  b: (secret, changed)",
        " kind: Secret",
        " metadata:",
        "   name: x",
    ]


async def test_a_refused_volume_change_is_reported(server):
    """Planners use the same existing objects as in the controller."""
    about = {"app.kubernetes.io/name": "postgresql", "app.kubernetes.io/managed-by": "gatewright"}
    about |= {"app.kubernetes.io/instance": "data", "app.kubernetes.io/component": "database"}
    claim = {"metadata": {"name": "data-data-0", "namespace": "shop", "labels": about}}
    server.create(CLAIM, claim | {"spec": {"resources": {"requests": {"storage": "5Gi"}}}})
    with pytest.raises(
        DocumentError, match=r"PostgreSQL data: spec\.storage: 1Gi; volumes of 5Gi cannot shrink"
    ):
        await printed(server, DATABASE)


async def test_a_rejection_by_the_api_server_is_reported(server):
    """The planned object is printed with the reason for its rejection."""
    deployment, service = await printed(
        server, SHOP.replace("namespace: shop", "namespace: nowhere")
    )
    for lines, kind in ((deployment, "apps/v1 Deployment"), (service, "v1 Service")):
        assert lines[0].startswith(
            f"# {kind} nowhere/shop: rejected by the API server: 404 NotFound: "
        )
        assert lines[1] == f"--- {kind} nowhere/shop (there)"


def test_a_multi_line_reason_does_not_look_like_a_diff():
    """A denial lists violations with a dash, like removed lines."""
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "shop"}}
    denied = Difference(
        child(WEBAPP, service),
        None,
        None,
        "denied the request: 1 violation\n- service-types: spec.type: NodePort",
    )
    assert list(denied.lines()) == [
        "# v1 Service shop/shop: denied the request: 1 violation",
        "# - service-types: spec.type: NodePort",
    ]


async def test_an_unreachable_api_server_is_an_error():
    """No diff is printed."""
    async with FakeApiServer() as gone:
        pass
    with pytest.raises(Unreachable):
        await printed(gone, SHOP)


PLATFORM = """\
apiVersion: platform.example.com/v1
kind: EcommercePlatform
metadata: {name: shop, namespace: shop}
spec: {backend: {image: "a:1"}, frontend: {image: "a:1"}}
"""
MONITORS = {
    "metadata": {"name": "servicemonitors.monitoring.coreos.com"},
    "spec": {
        "group": "monitoring.coreos.com",
        "scope": "Namespaced",
        "names": {"plural": "servicemonitors", "kind": "ServiceMonitor"},
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": ANYTHING}}
        ],
    },
}


async def test_available_apis_decide_the_plan(server):
    """A ServiceMonitor is planned if its API is served; otherwise Services get annotations."""
    found = {}
    for has_api in (False, True):
        if has_api:
            server.define(MONITORS)
        lines = [line for lines in await printed(server, PLATFORM) for line in lines]
        found[has_api] = (
            "+kind: ServiceMonitor" in lines,
            "+    prometheus.io/scrape: 'true'" in lines,
        )
    assert found == {False: (False, True), True: (True, False)}
