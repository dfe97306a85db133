"""Consecutive audits on the in-process API server: which objects they read, and which reports they write."""

import asyncio
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml
from cryptography.hazmat.primitives.asymmetric import ec
from prometheus_client import CollectorRegistry

from config.settings import Settings
from controller.audit import images as audited_images
from controller.audit.audit import REQUEST, Audit
from controller.audit.listing import Lister, RateLimit
from controller.audit.reports import KINDS
from gatewright.processes.planners import planners_of
from gatewright.processes.registries import image_look_ups
from gatewright.testing.fake_apiserver import FakeApiServer
from kube.client import Client
from kube.errors import Forbidden
from kube.resource import Resource
from tests.waiting import WITHIN
from tests.webhook.registries.conftest import rate_limited, small_registry
from tests.webhook.registries.signing import bundle, pem
from webhook.engine import Engine
from webhook.engine.image_look_ups import DIGESTS
from webhook.engine.kinds import KINDS as KINDS_OF_POLICIES
from webhook.engine.kinds import Kind
from webhook.policy_sets.bound_objects import bind
from webhook.policy_sets.catalogue import catalogue
from webhook.policy_sets.policy_set import PolicySet, in_force
from webhook.registries import cache

REPORT_CRDS = Path(__file__).parents[3] / "config/crd/reports"
NAMESPACE = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
DEPLOYMENT = Resource("apps", "v1", "deployments", "Deployment")
POD = Resource("", "v1", "pods", "Pod")
REPLICA_SET = Resource("apps", "v1", "replicasets", "ReplicaSet")
SERVICE = Resource("", "v1", "services", "Service")
DAEMON_SET = Resource("apps", "v1", "daemonsets", "DaemonSet")
LABELS = """
apiVersion: gatewright.io/v1alpha1
kind: ClusterAdmissionPolicy
metadata: {{name: team}}
spec:
  policy: required-labels
  params: {{labels: {{team: "*"}}}}
  match: {{any: [{{kinds: {kinds}}}]}}
"""
POLICY = """
apiVersion: gatewright.io/v1alpha1
kind: ClusterAdmissionPolicy
metadata: {name: few}
spec:
  policy: replica-limits
  match: {any: [{namespaceSelector: {matchLabels: {tier: web}}}]}
"""
BUDGETS = """
apiVersion: gatewright.io/v1alpha1
kind: ClusterAdmissionPolicy
metadata: {name: budgets}
spec: {policy: disruption-budgets, params: {workloads: true}}
"""
RULE = """
apiVersion: gatewright.io/v1alpha1
kind: ClusterAdmissionPolicy
metadata: {name: rule}
spec:
  match: {any: [{kinds: [Deployment, ReplicaSet]}]}
  validations:
    - {expression: "object.kind != 'ReplicaSet' || object.spec.replicas < 9", message: no ReplicaSets of many replicas}
"""
MESSAGE = "spec.replicas: 30; production workloads cannot exceed 10 replicas. Set it to 10 or less."


def engine(text=POLICY):
    """The engine of some policies."""
    return Engine([bind(each, catalogue()) for each in yaml.safe_load_all(text)])


def deployment(name, replicas, **metadata):
    """A Deployment in the namespace shop."""
    return {
        "metadata": {"name": name, "namespace": "shop", **metadata},
        "spec": {"replicas": replicas},
    }


@pytest.fixture(scope="module")
def report_crds():
    """The CRDs of reports."""
    return [
        crd for path in REPORT_CRDS.glob("*.yaml") for crd in yaml.safe_load_all(path.read_text())
    ]


@pytest.fixture
async def server(report_crds):
    """An API server with the CRDs of reports, and a namespace that the policy matches."""
    async with FakeApiServer() as fake:
        for crd in report_crds:
            fake.define(crd)
        fake.create(NAMESPACE, {"metadata": {"name": "shop", "labels": {"tier": "web"}}})
        yield fake


class Auditor:
    """Runs audits on one server and remembers what they wrote."""

    def __init__(self, server, client, registry, images=None):
        self.server, self.registry = server, registry
        self.now = datetime(2026, 11, 1, tzinfo=UTC)
        self.engine = engine()
        self.audit = Audit(
            client,
            lambda: self.engine,
            registry,
            interval=timedelta(minutes=10),
            qps=1000,
            excluded_namespaces=["kube-system"],
            images=images,
            now=lambda: self.now,
        )

    async def run(self):
        """Run one audit ten minutes later; return the writes that it sent."""
        self.now += timedelta(minutes=10)
        before = len(self.server.requests.log)
        await self.audit.reconcile(REQUEST)
        asked = self.server.requests.log[before:]
        return [
            f"{logged_request.method} {logged_request.path.rpartition('/')[2]}"
            for logged_request in asked
            if logged_request.method != "GET"
        ]

    def reports(self):
        """The reported violations, by object."""
        found = {}
        for resource in KINDS["openreports"]:
            for object in self.server.list(resource):
                found[object["scope"]["name"]] = [result["message"] for result in object["results"]]
        return found


@pytest.fixture
async def auditor(server):
    """Audits of the server."""
    async with Client(server.endpoint) as client:
        yield Auditor(server, client, CollectorRegistry())


async def test_violations_are_reported_until_they_are_fixed(server, auditor):
    """Only the violating object has a report; an unchanged one is not written again, and a corrected one loses it."""
    server.create(DEPLOYMENT, deployment("many", 30))
    server.create(DEPLOYMENT, deployment("few", 3))
    uid = server.get(DEPLOYMENT, "many", "shop")["metadata"]["uid"]
    assert await auditor.run() == [f"PATCH {uid}"]
    assert auditor.reports() == {"many": [MESSAGE]}
    assert await auditor.run() == []
    server.change(DEPLOYMENT, "many", {"spec": {"replicas": 10}}, "shop")
    assert await auditor.run() == [f"DELETE {uid}"]
    assert auditor.reports() == {}


async def test_what_another_api_server_computes_is_skipped(server, auditor):
    """An object without a uid, such as a PodMetrics, is never admitted."""
    computed = {"metadata": {"name": "a", "namespace": "shop"}, "spec": {"replicas": 30}}
    server.storage.commit(("apps", "deployments"), ("shop", "a"), computed)
    server.create(DEPLOYMENT, deployment("many", 30))
    uid = server.get(DEPLOYMENT, "many", "shop")["metadata"]["uid"]
    assert await auditor.run() == [f"PATCH {uid}"]
    assert auditor.reports() == {"many": [MESSAGE]}


async def test_an_object_without_a_name_is_skipped(server, auditor):
    """Another API server can list one; all other objects are judged."""
    server.storage.commit(("apps", "deployments"), ("shop", "a"), {"metadata": {"uid": "1"}})
    server.create(DEPLOYMENT, deployment("many", 30))
    await auditor.run()
    assert auditor.reports() == {"many": [MESSAGE]}


async def test_a_refused_report_hides_none_of_other_namespaces(server, auditor, caplog):
    """A quota of a namespace can refuse it; the audit does not count as a success."""
    metadata = {"name": "first", "namespace": "a"}
    server.create(NAMESPACE, {"metadata": {"name": "a", "labels": {"tier": "web"}}})
    server.create(DEPLOYMENT, {"metadata": metadata, "spec": {"replicas": 30}})
    server.create(DEPLOYMENT, deployment("many", 30))
    server.fail(1, 403, method="PATCH")
    await auditor.run()
    assert auditor.reports() == {"many": [MESSAGE]}
    assert caplog.messages[0].startswith("reports in a are not written: 403 Forbidden")
    succeeded = "gatewright_audit_last_success_timestamp_seconds"
    assert auditor.registry.get_sample_value(succeeded) == 0
    await auditor.run()
    assert auditor.reports() == {"first": [MESSAGE], "many": [MESSAGE]}


async def test_an_owner_hides_only_what_is_created_from_its_spec(server, auditor):
    """Anybody can name a Deployment as the owner of a Service, or a WebApp as that of a DaemonSet."""
    labels = LABELS.format(kinds="[Deployment, Service, DaemonSet, ReplicaSet]")
    auditor.engine = Engine(engine(labels).policies, planners_of(Settings(), "gatewright-system"))
    described = {"namespace": "shop", "labels": {"team": "shop"}}
    uid = server.create(DEPLOYMENT, {"metadata": {"name": "web", **described}, "spec": {}})
    owner = {"name": "web", "uid": uid["metadata"]["uid"], "controller": True}
    by_deployment = [owner | {"apiVersion": "apps/v1", "kind": "Deployment"}]
    by_web_app = [owner | {"apiVersion": "example.com/v1", "kind": "WebApp"}]
    server.create(SERVICE, deployment("service", 0, ownerReferences=by_deployment))
    server.create(REPLICA_SET, deployment("replicas", 3, ownerReferences=by_deployment))
    ring = owner | {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "ring"}
    server.create(REPLICA_SET, deployment("ring", 3, ownerReferences=[ring]))
    server.create(SERVICE, deployment("planned", 0, ownerReferences=by_web_app))
    server.create(DAEMON_SET, deployment("odd", 0, ownerReferences=by_web_app))
    await auditor.run()
    assert auditor.reports().keys() == {"service", "ring", "odd"}


async def test_replica_sets_of_a_custom_kind_with_pods_are_not_reported(
    server, auditor, monkeypatch
):
    """A Rollout (`--pod-kinds`) creates them, and is judged by the same policies."""
    rollout = Kind(
        "argoproj.io", "Rollout", "rollouts", ("v1alpha1",), pod_spec="spec.template.spec"
    )
    monkeypatch.setitem(KINDS_OF_POLICIES, ("argoproj.io", "Rollout"), rollout)
    auditor.engine = engine(LABELS.format(kinds="[Rollout, ReplicaSet]"))
    uid = server.create(REPLICA_SET, deployment("own", 3))["metadata"]["uid"]
    owner = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "name": "web", "uid": uid}
    of_rollout = [owner | {"controller": True}]
    server.create(REPLICA_SET, deployment("owned", 3, ownerReferences=of_rollout))
    await auditor.run()
    assert auditor.reports().keys() == {"own"}


async def test_children_of_judged_owners_are_not_reported(server, auditor):
    """Pods and ReplicaSets whose owner is judged by the same policies are skipped, and so are objects in deletion."""
    uid = server.create(DEPLOYMENT, deployment("many", 30))["metadata"]["uid"]
    owner = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "name": "many",
        "uid": uid,
        "controller": True,
    }
    server.create(REPLICA_SET, deployment("owned", 30, ownerReferences=[owner]))
    server.create(REPLICA_SET, deployment("own", 30))
    server.create(DEPLOYMENT, deployment("going", 30, finalizers=["example.com/hold"]))
    server.delete(DEPLOYMENT, "going", "shop")
    await auditor.run()
    assert auditor.reports() == {"many": [MESSAGE], "own": [MESSAGE]}


async def test_a_rule_in_cel_judges_what_is_owned_too(server, auditor):
    """It may be about fields that the owner does not have; a violation of the owner is not reported again."""
    auditor.engine = engine(f"{POLICY}---{RULE}")
    uid = server.create(DEPLOYMENT, deployment("many", 30))["metadata"]["uid"]
    owner = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "name": "many",
        "uid": uid,
        "controller": True,
    }
    server.create(REPLICA_SET, deployment("owned", 30, ownerReferences=[owner]))
    await auditor.run()
    assert auditor.reports() == {"many": [MESSAGE], "owned": ["no ReplicaSets of many replicas"]}


async def test_the_next_leader_continues_the_audit(server, auditor):
    """It has no memory of previous audits, and does not write unchanged reports again."""
    server.create(DEPLOYMENT, deployment("many", 30))
    await auditor.run()
    async with Client(server.endpoint) as client:
        assert await Auditor(server, client, CollectorRegistry()).run() == []


async def test_exceptions_that_have_ended_do_not_count(server, auditor):
    """The time of the audit decides; the audit counts the violations that each exception covers."""
    server.create(DEPLOYMENT, deployment("many", 30))
    exception = {
        "apiVersion": "gatewright.io/v1alpha1",
        "kind": "PolicyException",
        "metadata": {"name": "sale"},
        "spec": {
            "reason": "sale",
            "expires": "2026-11-01T00:15:00Z",
            "exceptions": [{"policy": "few"}],
        },
    }
    policies = PolicySet(
        (bind(yaml.safe_load(POLICY), catalogue()),), (bind(exception, catalogue()),)
    )
    auditor.engine = Engine(in_force(policies, catalogue()))
    await auditor.run()
    assert auditor.reports() == {}
    assert auditor.audit.covers == {"PolicyException sale": 1}
    await auditor.run()
    assert auditor.reports() == {"many": [MESSAGE]}
    assert auditor.audit.covers == {}


async def test_a_kind_that_cannot_be_listed_hides_no_other(server, auditor):
    """Reports of its objects stay, other reports are updated, and the audit does not count as a success."""
    server.create(DEPLOYMENT, deployment("many", 30))
    await auditor.run()
    succeeded = auditor.registry.get_sample_value("gatewright_audit_last_success_timestamp_seconds")
    server.create(REPLICA_SET, deployment("own", 30))
    server.fail(1, 403, path="/deployments")
    await auditor.run()
    assert auditor.reports() == {"many": [MESSAGE], "own": [MESSAGE]}
    assert (
        auditor.registry.get_sample_value("gatewright_audit_last_success_timestamp_seconds")
        == succeeded
    )


async def test_a_look_up_that_cannot_be_listed_ends_the_pass(server, auditor):
    """Policies that need it could not decide about any object, so every report stays."""
    auditor.engine = engine(f"{POLICY}---{BUDGETS}")
    server.create(DEPLOYMENT, deployment("many", 30))
    await auditor.run()
    server.change(DEPLOYMENT, "many", {"spec": {"replicas": 10}}, "shop")
    server.fail(1, 403, path="/poddisruptionbudgets")
    with pytest.raises(Forbidden):
        await auditor.run()
    assert auditor.reports() == {"many": [MESSAGE]}


async def test_totals_are_those_of_the_policies_that_were_in_force(server, auditor):
    """The totals are violations, violating objects, and judged objects."""
    server.create(DEPLOYMENT, deployment("many", 30))
    server.create(DEPLOYMENT, deployment("few", 3))
    await auditor.run()
    assert auditor.audit.totals == {"few": {"violations": 1, "wouldDeny": 1, "auditedObjects": 2}}


async def test_without_the_report_crds_metrics_are_all(server, auditor):
    """The audit logs that the CRDs are missing, and does not count as a success."""
    for resource in KINDS["openreports"]:
        server.fail(1, 404, path=f"/{resource.plural}")
    server.create(DEPLOYMENT, deployment("many", 30))
    assert await auditor.run() == []
    labels = {"policy": "few", "namespace": "shop", "severity": "medium"}
    assert auditor.registry.get_sample_value("gatewright_audit_violations", labels) == 1
    assert auditor.registry.get_sample_value("gatewright_audit_objects") == 1
    assert auditor.registry.get_sample_value("gatewright_audit_last_success_timestamp_seconds") == 0


def pages(server):
    """The limit of each list of Deployments so far."""
    return [
        logged_request.query.get("limit")
        for logged_request in server.requests.log
        if logged_request.path.endswith("/deployments")
    ]


async def test_a_list_is_read_page_by_page(server, auditor):
    """A page has 500 objects, as kubectl's pages have."""
    for index in range(1501):
        server.create(DEPLOYMENT, deployment(f"few-{index}", 3))
    assert await auditor.run() == []
    assert pages(server) == ["500"] * 4
    assert auditor.registry.get_sample_value("gatewright_audit_objects") == 1501


async def test_a_list_continues_after_its_token_expires(server):
    """If the token expires during the list, the rest is listed in its present state, and no object twice."""
    names = [f"few-{number:03}" for number in range(501)]
    for name in names:
        server.create(DEPLOYMENT, deployment(name, 3))
    found = []
    async with Client(server.endpoint) as client:
        async for item in Lister(client, RateLimit(1000)).list(DEPLOYMENT):
            if not found:
                server.create(DEPLOYMENT, deployment("new", 3))
                server.storage.compact()
            found.append(item["metadata"]["name"])
    assert found == [*names, "new"]


async def test_kinds_that_the_cluster_does_not_have_cost_nothing(server, auditor):
    """One request tells which groups it has."""
    await auditor.run()
    asked = [each.path for each in server.requests.log]
    assert asked.count("/apis") == 1
    assert not [each for each in asked if "keda.sh" in each]


async def test_requests_to_an_overloaded_server_are_retried(server, auditor):
    """The request is retried after Retry-After, such as in the first second of a CRD; nothing is skipped or fails."""
    server.create(DEPLOYMENT, deployment("many", 30))
    server.fail(2, 429, path="/reports", retry_after="0")
    await auditor.run()
    assert auditor.reports() == {"many": [MESSAGE]}
    assert (
        auditor.registry.get_sample_value("gatewright_audit_last_success_timestamp_seconds")
        is not None
    )


async def test_audits_do_not_follow_one_another_at_once(auditor):
    """However often policies change, a pass requested within seconds of the last one waits."""
    await auditor.run()
    auditor.now += timedelta(seconds=5)
    assert (await auditor.audit.reconcile(REQUEST)).requeue_after == timedelta(seconds=10)


KEY = ec.generate_private_key(ec.SECP256R1())
DIGEST = f"sha256:{'a' * 64}"


@pytest.fixture
async def registry():
    """A registry of images."""
    async with small_registry() as small:
        yield small


@pytest.fixture
async def verifying(server, registry):
    """Audits by a policy that wants the images of the registry signed."""
    settings = Settings(insecure_registries=[registry.address])
    async with Client(server.endpoint) as client, image_look_ups(settings) as images:
        found = Auditor(server, client, CollectorRegistry(), images)
        found.engine = engine(signed_by(KEY, registry))
        yield found


def signed_by(key, registry):
    """The policy that wants the images of a registry signed."""
    entry = {"images": [f"{registry.address}/team"], "keys": [pem(key)]}
    spec = {"policy": "image-signatures", "params": {"signatures": [entry]}}
    kind = {"apiVersion": "gatewright.io/v1alpha1", "kind": "ClusterAdmissionPolicy"}
    return yaml.safe_dump({**kind, "metadata": {"name": "signed"}, "spec": spec})


def run_image(server, registry):
    """Create a Deployment that runs the image; return the image."""
    image = f"{registry.address}/team/shop@{DIGEST}"
    template = {"spec": {"containers": [{"name": "app", "image": image}]}}
    new = deployment("shop", 3)
    new["spec"]["template"] = template
    server.create(DEPLOYMENT, new)
    return image


def levels(server):
    """The result of each report."""
    return [
        object["results"][0]["result"]
        for kind in KINDS["openreports"]
        for object in server.list(kind)
    ]


async def test_images_that_run_are_verified_once(server, registry, verifying):
    """A signed image is not reported, and the next pass sends no request.

    With another key it is reported as unsigned.
    """
    image = run_image(server, registry)
    registry.attach(DIGEST, bundle(KEY, DIGEST))
    await verifying.run()
    assert verifying.reports() == {}
    asked = len(registry.asked)
    await verifying.run()
    assert len(registry.asked) == asked > 0
    verifying.engine = engine(signed_by(ec.generate_private_key(ec.SECP256R1()), registry))
    await verifying.run()
    (message,) = verifying.reports()["shop"]
    assert message.startswith(
        f'spec.template.spec.containers[name=app].image: "{image}" has no signature by a key'
    )
    assert levels(server) == ["fail"]


async def test_a_tag_is_judged_by_the_digest_that_a_pod_runs(server, registry, verifying):
    """The present digest of the tag does not matter; a Pod that has not started is judged by its spec."""
    image = f"{registry.address}/team/shop:1"
    registry.attach(DIGEST, bundle(KEY, DIGEST))
    other = f"sha256:{'b' * 64}"
    image_ids = {
        "signed": f"mirror.example.com/shop@{DIGEST}",
        "moved": f"docker-pullable://{registry.address}/team/shop@{other}",
        "waiting": "",
        "local": DIGEST,
    }
    for name, image_id in image_ids.items():
        status = {"initContainerStatuses": [{"name": "app", "imageID": image_id}]}
        spec = {"initContainers": [{"name": "app", "image": image}]}
        metadata = {"name": name, "namespace": "shop"}
        server.create(POD, {"metadata": metadata, "spec": spec})
        server.change(POD, name, {"status": status}, "shop", "status")
    await verifying.run()
    found = {name: messages for name, (messages,) in verifying.reports().items()}
    place = f'spec.initContainers[name=app].image: "{image}"'
    assert sorted(found) == ["local", "moved", "waiting"]
    assert found["moved"].startswith(f"{place} (it runs {other}) has no signature by a key")
    assert found["moved"].endswith(
        f"Sign it: cosign sign --key cosign.key {registry.address}/team/shop@{other}."
    )
    assert found["waiting"].startswith(f"{place} has no digest, so what is verified")
    assert found["local"] == found["waiting"]


@pytest.mark.long
async def test_a_registry_that_refuses_is_an_error_until_it_answers(
    server, registry, verifying, monkeypatch
):
    """An image that cannot be verified has the result error, with the reason."""
    monkeypatch.setattr(cache, "REFUSAL_SECONDS", 0.5)
    image = run_image(server, registry)
    registry.attach(DIGEST, bundle(KEY, DIGEST))
    registry.handlers["*"] = rate_limited
    await verifying.run()
    reason = f"{image}: registry {registry.address} limits the rate of requests (429)"
    assert verifying.reports() == {"shop": [reason]}
    assert levels(server) == ["error"]
    registry.handlers.clear()
    async with asyncio.timeout(WITHIN):
        while verifying.reports():
            await verifying.run()


async def test_a_pass_does_not_wait_for_registries_for_ever(
    server, registry, verifying, monkeypatch
):
    """After a time limit, unread images are errors; other policies judge as usual."""
    monkeypatch.setattr(audited_images, "REGISTRY_SECONDS", 0.0)
    verifying.engine = engine(f"{signed_by(KEY, registry)}---{POLICY}")
    run_image(server, registry)
    server.create(DEPLOYMENT, deployment("many", 30))
    await verifying.run()
    unknown = "could not be decided, since image signatures could not be looked up. Try again."
    assert verifying.reports() == {"shop": [unknown], "many": [MESSAGE]}
    assert registry.asked == []


async def test_requests_to_registries_have_a_limited_rate(registry):
    """Four requests at ten per second take 0.3 seconds."""
    settings = Settings(insecure_registries=[registry.address])
    async with image_look_ups(settings, qps=10) as images:
        review = images.of_review(frozenset({DIGESTS}))
        for tag in range(4):
            review.looked_up[DIGESTS].get(f"{registry.address}/team/shop:{tag}")
        began = time.monotonic()
        assert await review.has_more(is_denied=False, seconds=20)
    assert len(registry.asked) == 4
    assert time.monotonic() - began >= 0.3
