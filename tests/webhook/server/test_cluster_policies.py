"""Policy objects of the cluster take effect as from files, and an invalid version does not unload a valid one."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from config.documents import parse_documents, read_documents
from config.settings import Settings
from gatewright.processes.proofs import Proofs
from gatewright.testing.fake_apiserver import FakeApiServer
from kube.client import Client
from kube.store import Store
from kube.watch import Watch
from tests.waiting import WITHIN
from tests.webhook.asking import ask
from tests.webhook.server.conftest import review
from webhook.engine import NOW, Engine
from webhook.engine.conflicts import refuse_conflict
from webhook.engine.exceptions import AppliedExceptions
from webhook.policy_sets.catalogue import catalogue
from webhook.policy_sets.policy_set import PolicySet, in_force, read
from webhook.server import cluster_policies
from webhook.server.cluster_data import NAMESPACES
from webhook.server.cluster_policies import RESOURCES, PolicyObjects
from webhook.server.engine_in_force import Policies
from webhook.server.metrics import WebhookMetrics

BASES = Path(__file__).parents[3] / "config/crd/bases"
DEFINITIONS = [
    each.value for file in BASES.glob("gatewright.io_*.yaml") for each in read_documents(file)
]
HOME = "gatewright-system"
CLUSTER, TENANT, EXCEPTION = RESOURCES
TODAY = datetime(2026, 11, 21, tzinfo=UTC)

WRITTEN = """\
apiVersion: gatewright.io/v1alpha1
kind: ClusterAdmissionPolicy
metadata: {name: few}
spec:
  policy: replica-limits
  params: {maximum: 3, tier: cluster}
  match: {any: [{kinds: [Deployment], namespaces: [shop]}], exclude: {users: [root]}}
  validationActions: [Deny, Audit]
---
apiVersion: gatewright.io/v1alpha1
kind: ClusterAdmissionPolicy
metadata: {name: advice}
spec:
  policy: replica-limits
  params: {maximum: 2}
  validationActions: [Warn]
  failurePolicy: Ignore
  allowExistingViolations: false
---
apiVersion: gatewright.io/v1alpha1
kind: AdmissionPolicy
metadata: {name: fewer, namespace: shop}
spec:
  policy: replica-limits
  params: {maximum: 1, tier: team}
---
apiVersion: gatewright.io/v1alpha1
kind: PolicyException
metadata: {name: black-friday, namespace: gatewright-system}
spec:
  reason: twice the traffic
  expires: "2026-12-01T00:00:00Z"
  exceptions: [{policy: few, names: [big], params: {maximum: 6}}]
---
apiVersion: gatewright.io/v1alpha1
kind: PolicyException
metadata: {name: moving, namespace: shop}
spec:
  reason: moving
  expires: "2026-12-01T00:00:00Z"
  exceptions: [{policy: fewer, names: [moved]}, {policy: few}]
"""


@dataclass
class Cluster:
    """A webhook's view of the policy objects of an API server."""

    server: FakeApiServer
    registry: CollectorRegistry = field(default_factory=CollectorRegistry)
    stores: list[Store] = field(default_factory=list)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    files: PolicySet = field(default_factory=PolicySet)
    exceptions: AppliedExceptions = field(default_factory=lambda: AppliedExceptions(HOME))

    def __post_init__(self) -> None:
        metrics = WebhookMetrics(self.registry)
        self.stores = [Store(resource) for resource in RESOURCES]
        proofs = Proofs(Settings(), catalogue(), HOME)
        objects = PolicyObjects(self.stores, catalogue(), metrics, HOME, proofs.prove_object)
        self.policies = Policies([], lambda: self.files, self._build, objects, metrics)
        objects.subscribe(self.changed.set)

    def _build(self, policies: PolicySet, before: Engine | None) -> Engine:
        return Engine(in_force(policies, catalogue(), HOME, self.exceptions), before=before)

    async def watching(self, client: Client) -> None:
        """Watch the objects forever."""
        async with asyncio.TaskGroup() as group:
            for store in self.stores:
                group.create_task(Watch(client, store.resource, store).run())

    async def seen(self) -> None:
        """Wait until every stored object is cached, and put them in force."""
        async with asyncio.timeout(WITHIN):
            for store in self.stores:
                await store.synced.wait()
            while not all(map(self._has_all, self.stores)):
                self.changed.clear()
                await self.changed.wait()
        self.policies.refresh()

    def _has_all(self, store: Store) -> bool:
        stored = {
            store.key_of(object): int(object["metadata"]["resourceVersion"])
            for object in self.server.list(store.resource)
        }
        keys = store.keys()
        return stored == {
            key: entry.resource_version for key in keys if (entry := store.entry(key))
        }

    def generation(self, kind: str, name: str) -> float | None:
        """Return the generation reported for an object."""
        return self.registry.get_sample_value(
            "gatewright_policy_generation", {"kind": kind, "name": name}
        )

    def denied(self, replicas: int, name: str = "it", **about: str) -> list[str]:
        """Return the violations of a Deployment with this many replicas, and the policies that deny it."""
        assert self.policies.engine is not None
        return found(self.policies.engine, replicas, name, **about)


def found(engine: Engine, replicas: int, name: str = "it", **about: str) -> list[str]:
    """Return the violations of a Deployment with this many replicas."""
    deployment = {"kind": "Deployment", "metadata": {"name": name}, "spec": {"replicas": replicas}}
    verdict = engine.validate(
        ask(deployment, "Deployment", name=name, looked_up={NOW: TODAY}, **about)
    )
    return [
        f"{outcome.policy} {'+'.join(sorted(outcome.actions))}: {violation.message}"
        for outcome in verdict.outcomes
        for violation in outcome.violations
    ]


@pytest.fixture
async def server() -> AsyncIterator[FakeApiServer]:
    """An API server with Gatewright's kinds and no objects."""
    async with FakeApiServer() as fake:
        for definition in DEFINITIONS:
            fake.define(definition)
        for namespace in (HOME, "shop"):
            fake.create(NAMESPACES, {"metadata": {"name": namespace}})
        yield fake


@asynccontextmanager
async def connected(server: FakeApiServer, **known: PolicySet) -> AsyncIterator[Cluster]:
    """A webhook's view of the cluster, kept by watches."""
    cluster = Cluster(server, **known)
    async with Client(server.endpoint) as client:
        watching = asyncio.create_task(cluster.watching(client))
        await asyncio.sleep(0)
        yield cluster
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)  # before its connections are closed


@pytest.fixture
async def cluster(server: FakeApiServer) -> AsyncIterator[Cluster]:
    """That view, after the initial lists."""
    async with connected(server) as view:
        await view.seen()
        yield view


def few(maximum: int = 3, **params: object) -> dict:
    """Return a policy object that allows this many replicas."""
    return {
        "metadata": {"name": "few"},
        "spec": {"policy": "replica-limits", "params": {"maximum": maximum} | params},
    }


def apply(server: FakeApiServer, text: str) -> None:
    """Store the objects of a file."""
    for document in parse_documents(text.encode(), "applied"):
        server.create(
            next(each for each in RESOURCES if each.kind == document.value["kind"]), document.value
        )


ASKED = [
    {"replicas": replicas, "name": name, "namespace": namespace, "username": user}
    for replicas in (1, 2, 3, 4, 6, 7)
    for name in ("it", "big", "moved")
    for namespace in ("shop", "lab")
    for user in ("jane", "root")
]


async def test_the_same_yaml_has_the_same_effect_in_a_file_and_in_the_cluster(server, cluster):
    """Violations, actions, look-ups and judged kinds are equal for any request."""
    from_files = Engine(
        in_force(read(parse_documents(WRITTEN.encode(), "x"), catalogue()), catalogue(), HOME)
    )
    apply(server, WRITTEN)
    await cluster.seen()
    engine = cluster.policies.engine
    assert [sorted(found(engine, **asked)) for asked in ASKED] == [
        sorted(found(from_files, **asked)) for asked in ASKED
    ]
    assert sum(bool(found(engine, **asked)) for asked in ASKED) > len(ASKED) / 2
    assert engine.judged_kinds == from_files.judged_kinds
    request = ask({}, "Deployment")
    assert engine.needs(request.attributes) == from_files.needs(request.attributes) == {NOW}
    assert cluster.denied(4) == [
        "advice Warn: spec.replicas: 4; production workloads cannot exceed 2 replicas. Set it to 2 or less.",
        "few Audit+Deny: spec.replicas: 4; cluster workloads cannot exceed 3 replicas. Set it to 3 or less.",
        "shop/fewer Deny: spec.replicas: 4; team workloads cannot exceed 1 replicas. Set it to 1 or less.",
    ]


async def test_objects_come_into_force_change_and_end(server, cluster):
    """Each version has its generation, and deletion leaves nothing."""
    assert cluster.denied(4) == []
    server.create(CLUSTER, few(3))
    await cluster.seen()
    assert len(cluster.denied(4)) == 1
    assert cluster.generation("ClusterAdmissionPolicy", "few") == 1
    server.change(CLUSTER, "few", {"spec": {"params": {"maximum": 4}}})
    await cluster.seen()
    assert (cluster.denied(4), len(cluster.denied(5))) == ([], 1)
    assert cluster.generation("ClusterAdmissionPolicy", "few") == 2
    server.delete(CLUSTER, "few")
    await cluster.seen()
    assert cluster.denied(5) == []
    assert cluster.generation("ClusterAdmissionPolicy", "few") is None


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (
            {"params": {"maximun": 9}},
            'spec.params.maximun: unknown parameter; did you mean "maximum"?',
        ),
        ({"params": {"maximum": "many"}}, 'spec.params.maximum: "many": should be a valid integer'),
        (
            {"policy": "replica-limit"},
            'spec.policy: no policy "replica-limit"; did you mean "replica-limits"?',
        ),
        (
            {"match": {"any": [{"kinds": ["Deploymnt"]}]}},
            'spec.match.any[0].kinds: replica-limits does not look at "Deploymnt"; did you mean "Deployment"?',
        ),
    ],
)
async def test_an_invalid_version_keeps_the_valid_one(server, cluster, caplog, change, told):
    """The valid one stays in force and is reported, the log has the error, and a correction is applied."""
    server.create(CLUSTER, few(3))
    await cluster.seen()
    caplog.set_level(logging.WARNING)
    server.change(CLUSTER, "few", {"spec": change})
    server.create(TENANT, few(1) | {"metadata": {"name": "fewer", "namespace": "shop"}})
    await cluster.seen()
    assert [line.partition(":")[0] for line in cluster.denied(4)] == ["few Deny", "shop/fewer Deny"]
    assert cluster.generation("ClusterAdmissionPolicy", "few") == 1
    assert [record.getMessage() for record in caplog.records] == [
        f"ClusterAdmissionPolicy few cannot be used, its last good version stays in force: {told}"
    ]
    server.delete(CLUSTER, "few")
    server.create(CLUSTER, few(4))
    await cluster.seen()
    assert len(cluster.denied(5)) == 2


def test_a_status_change_compiles_nothing():
    """The controller writes the status of every policy object; only a new generation is compiled."""
    store = Store(CLUSTER)
    objects = PolicyObjects([store], catalogue(), WebhookMetrics(CollectorRegistry()))

    def is_compiled(version: int, generation: int, **status: object) -> bool:
        metadata = {
            "name": "few",
            "uid": "1",
            "resourceVersion": str(version),
            "creationTimestamp": "2026-11-21T00:00:00Z",
            "generation": generation,
        }
        store.put({**few(), "metadata": metadata, "status": status})
        return objects.compile(lambda *_: None)

    assert is_compiled(5, 1)
    assert not is_compiled(6, 1, observedGeneration=1)
    assert is_compiled(7, 2, observedGeneration=1)
    store.remove("few")
    assert objects.compile(lambda *_: None)
    assert objects.in_force() == PolicySet()


async def test_an_invalid_object_is_not_in_force(server, cluster, caplog):
    """The log has the error, and no generation is reported; other objects are in force."""
    server.create(CLUSTER, few(-1))
    server.create(TENANT, few(1) | {"metadata": {"name": "fewer", "namespace": "shop"}})
    await cluster.seen()
    assert [line.partition(":")[0] for line in cluster.denied(4)] == ["shop/fewer Deny"]
    assert cluster.generation("ClusterAdmissionPolicy", "few") is None
    assert [record.getMessage() for record in caplog.records] == [
        "ClusterAdmissionPolicy few cannot be used, it is not in force: "
        "spec.params.maximum: -1: should be greater than or equal to 0"
    ]


async def test_an_object_replaces_one_of_the_same_name_in_a_file(server):
    """After its deletion, the file's is in force again."""
    text = WRITTEN.partition("---")[0]
    async with connected(
        server, files=read(parse_documents(text.encode(), "x"), catalogue())
    ) as cluster:
        server.create(CLUSTER, few(5))
        await cluster.seen()
        assert (cluster.denied(5), len(cluster.denied(6))) == ([], 1)
        server.delete(CLUSTER, "few")
        await cluster.seen()
        assert (cluster.denied(3), len(cluster.denied(4))) == ([], 1)


def defaults(name: str, cpu: str) -> dict:
    """Return a policy object that sets a default limit."""
    return {
        "metadata": {"name": name},
        "spec": {"policy": "resource-defaults", "params": {"limits": {"cpu": cpu}}},
    }


async def test_a_conflicting_object_is_not_in_force(server, cluster, caplog):
    """The earlier one stays in force, other changes are applied, and it comes into force when the conflict ends."""
    server.create(CLUSTER, defaults("one", "1"))
    await cluster.seen()
    caplog.set_level(logging.WARNING)
    server.create(CLUSTER, defaults("another", "2"))
    server.create(CLUSTER, few(3))
    await cluster.seen()
    assert names(cluster) == {"one", "few"}
    assert cluster.generation("ClusterAdmissionPolicy", "another") is None
    _, conflict = cluster.policies.objects.refusal((CLUSTER, "another"))
    first, _, rest = conflict.partition("\n")
    assert first == (
        "one and another set Pod spec.containers[name=container].resources.limits.cpu to different "
        'values: "1" and "2"'
    )
    assert rest
    assert [record.getMessage() for record in caplog.records] == [
        f"ClusterAdmissionPolicy another cannot be used, it is not in force: {conflict}"
    ]
    assert cluster.policies.objects.refusal((CLUSTER, "one")) is None

    server.change(CLUSTER, "one", {"spec": {"params": {"limits": {"cpu": "2"}}}})
    await cluster.seen()
    assert names(cluster) == {"one", "few", "another"}
    assert cluster.policies.objects.problems == {}
    server.change(CLUSTER, "one", {"spec": {"params": {"limits": {"cpu": "3"}}}})
    await cluster.seen()
    assert names(cluster) == {"one", "few", "another"}
    assert cluster.generation("ClusterAdmissionPolicy", "one") == 2
    server.delete(CLUSTER, "another")
    await cluster.seen()
    assert cluster.generation("ClusterAdmissionPolicy", "one") == 3


async def test_a_webhook_starts_despite_conflicts(server):
    """All replicas choose the same objects, and none waits for a correction."""
    for name, cpu in (("a", "2"), ("b", "1"), ("c", "2")):
        server.create(CLUSTER, defaults(name, cpu))
    async with connected(server) as view:
        await view.seen()
        assert names(view) == {"a", "c"}
        assert view.policies.ready() is None


def test_a_webhook_that_starts_later_chooses_the_older_of_two_that_conflict():
    """It has the same policies in force as a replica that has run since before the younger one."""
    stores = [Store(resource) for resource in RESOURCES]
    for name, cpu, day in (("b", "1", 1), ("a", "2", 2), ("c", "2", 3)):
        policy = defaults(name, cpu)
        metadata = {
            "name": name,
            "uid": name,
            "resourceVersion": str(day),
            "creationTimestamp": f"2026-11-{day:02}T00:00:00Z",
        }
        kind = {"apiVersion": "gatewright.io/v1alpha1", "kind": "ClusterAdmissionPolicy"}
        stores[0].put(kind | policy | {"metadata": metadata})
    objects = PolicyObjects(stores, catalogue(), WebhookMetrics(CollectorRegistry()))
    objects.compile(lambda policy, found: refuse_conflict(policy, found.policies))
    assert [each.name for each in objects.in_force().policies] == ["b"]
    assert objects.refusal((CLUSTER, "a")) is not None


async def test_the_policies_of_a_tenant_have_room_for_64_kib_together(server, cluster, caplog):
    """Policies beyond the limit are not in force until there is room; other namespaces have separate limits."""
    labels = {f"label-{number}": "*" for number in range(2000)}

    def large(name: str, namespace: str) -> dict[str, Any]:
        metadata = {"name": name, "namespace": namespace}
        spec = {"policy": "required-labels", "params": {"labels": labels}}
        return {
            "apiVersion": "gatewright.io/v1alpha1",
            "kind": "AdmissionPolicy",
            "metadata": metadata,
            "spec": spec,
        }

    server.create(NAMESPACES, {"metadata": {"name": "lab"}})
    for name, namespace in (("a", "shop"), ("b", "shop"), ("c", "lab")):
        server.create(TENANT, large(name, namespace))
    await cluster.seen()
    problem = (
        "the AdmissionPolicies and PolicyExceptions of namespace shop would have 66,562 bytes "
        "together; at most 65,536 are in force"
    )
    assert (names(cluster), cluster.policies.objects.refusal((TENANT, "shop/b")).message) == (
        {"a", "c"},
        problem,
    )
    assert [each.message for each in caplog.records if each.levelno == logging.WARNING] == [
        f"AdmissionPolicy shop/b cannot be used, it is not in force: {problem}",
    ]
    server.delete(TENANT, "a", "shop")
    await cluster.seen()
    assert (names(cluster), cluster.policies.objects.problems) == ({"b", "c"}, {})


async def test_a_stored_object_stays_in_force_if_words_of_its_match_add_nothing(server, cluster):
    """It may have been stored by a release that accepted them; only a new object must not have them."""
    built_in = {"kinds": ["Deployment", "HorizontalPodAutoscaler"], "subresources": ["scale"]}
    cel = {"kinds": ["Deployment"], "subresources": ["", "exec"], "operations": ["CREATE"]}
    for name, clause, sort in (
        ("built-in", built_in, {"policy": "replica-limits"}),
        ("cel", cel, {"validations": [{"expression": "false"}]}),
    ):
        spec = {"match": {"any": [clause]}} | sort
        server.create(CLUSTER, {"metadata": {"name": name}, "spec": spec})
    await cluster.seen()
    assert (names(cluster), cluster.policies.objects.problems) == ({"built-in", "cel"}, {})


def names(cluster: Cluster) -> set[str]:
    """Return the names of the objects in force."""
    return {each.name for each in cluster.policies.engine.policies if not each.policy.always}


async def test_changes_missed_by_a_watch_are_found(server, cluster):
    """An object is deleted and another created while the watches are cut."""
    server.create(CLUSTER, few(3))
    await cluster.seen()
    server.expire_watches()
    server.delete(CLUSTER, "few")
    server.create(CLUSTER, few(1) | {"metadata": {"name": "one"}})
    await cluster.seen()
    assert [line.partition(":")[0] for line in cluster.denied(4)] == ["one Deny"]
    assert cluster.generation("ClusterAdmissionPolicy", "few") is None


async def test_nothing_is_judged_before_the_initial_lists(server, start):
    """The webhook answers 503 and is not ready; afterwards every stored object is in force from the first answer."""
    server.create(CLUSTER, few(3))
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "it"},
        "spec": {"replicas": 4},
    }
    asked = review(
        kind={"group": "apps", "version": "v1", "kind": "Deployment"},
        resource={"group": "apps", "version": "v1", "resource": "deployments"},
        object=deployment,
    )
    async with start() as webhook, connected(server) as view:
        webhook.policies.engine = view.policies.engine
        assert view.policies.ready() == "not loaded yet"
        view.policies.refresh()
        assert view.policies.ready() == "policy objects of the cluster: not read yet"
        before = await webhook.post(asked)
        assert (before.status, before.headers["retry-after"]) == (503, "1")
        assert b"allowed" not in before.body
        await view.seen()
        webhook.policies.engine = view.policies.engine
        assert view.policies.ready() is None
        after = json.loads((await webhook.post(asked)).body)["response"]
        assert (after["allowed"], after["status"]["message"]) == (
            False,
            "1 violation\n- few: spec.replicas: 4; production workloads cannot exceed 3 replicas. Set it to 3 or less.",
        )


def many_images(name: str, namespace: str, number: int = 600) -> dict[str, Any]:
    """Return an exception for many images, of about 30 KB."""
    images = [f"registry.example.com/team-{each}/application-*/web:1.?" for each in range(number)]
    spec = {
        "reason": "moving",
        "expires": "2026-12-01T00:00:00Z",
        "exceptions": [{"policy": "few", "images": images}],
    }
    metadata = {"name": name, "namespace": namespace}
    kind = {"apiVersion": "gatewright.io/v1alpha1", "kind": "PolicyException"}
    return {**kind, "metadata": metadata, "spec": spec}


async def test_exceptions_count_in_the_room_of_their_namespace(server, cluster):
    """Not those of Gatewright's own namespace; the others go on, and there is room again later."""
    for name, namespace in (("a", "shop"), ("b", "shop"), ("c", "shop"), ("d", HOME), ("e", HOME)):
        server.create(EXCEPTION, many_images(name, namespace))
    await cluster.seen()
    objects = cluster.policies.objects
    assert {each.name for each in objects.in_force().exceptions} == {"a", "b", "d", "e"}
    assert "namespace shop would have" in objects.refusal((EXCEPTION, "shop/c")).message
    server.delete(EXCEPTION, "a", "shop")
    await cluster.seen()
    assert {each.name for each in objects.in_force().exceptions} == {"b", "c", "d", "e"}


async def test_the_objects_of_all_tenants_are_bounded(server, cluster, monkeypatch):
    """Whatever namespaces they are in."""
    monkeypatch.setattr(cluster_policies, "MAX_TENANTS_BYTES", 80_000)
    for name in ("a", "b", "c"):
        server.create(NAMESPACES, {"metadata": {"name": f"tenant-{name}"}})
        server.create(EXCEPTION, many_images(name, f"tenant-{name}"))
    await cluster.seen()
    objects = cluster.policies.objects
    assert {each.name for each in objects.in_force().exceptions} == {"a", "b"}
    assert "of all namespaces would have" in objects.refusal((EXCEPTION, "tenant-c/c")).message


def with_case(maximum: int, replicas: int) -> dict:
    """Return a policy with a case: this many replicas are allowed."""
    object = few(maximum)
    deployment = {"kind": "Deployment", "spec": {"replicas": replicas}}
    object["spec"]["cases"] = [{"name": "enough", "object": deployment, "expect": "allowed"}]
    return object


async def test_a_version_whose_case_fails_leaves_the_one_before_in_force(server, cluster):
    """The refusal has the case, what it expected and what came."""
    server.create(CLUSTER, with_case(3, 3))
    await cluster.seen()
    assert cluster.generation("ClusterAdmissionPolicy", "few") == 1
    server.change(CLUSTER, "few", {"spec": {"params": {"maximum": 2}}})
    await cluster.seen()
    assert cluster.generation("ClusterAdmissionPolicy", "few") == 1
    assert not cluster.denied(3)
    reason, message = cluster.policies.refusal(CLUSTER, "few")
    assert (reason, message.partition("; ")[0]) == (
        "CaseFailed",
        'ClusterAdmissionPolicy few: case "enough": expected allowed, got denied with code 403',
    )
    server.change(CLUSTER, "few", {"spec": {"params": {"maximum": 4}}})
    await cluster.seen()
    assert cluster.policies.refusal(CLUSTER, "few") is None
    assert cluster.generation("ClusterAdmissionPolicy", "few") == 3


IN_FORCE = {
    "status": {
        "observedGeneration": 1,
        "conditions": [
            {
                "type": "Ready",
                "status": "True",
                "reason": "InForce",
                "message": "",
                "lastTransitionTime": "2026-11-21T00:00:00Z",
            }
        ],
    }
}


@pytest.mark.parametrize("was_in_force", [True, False])
async def test_a_pod_is_not_ready_if_its_version_fails_a_case_of_a_policy_in_force(
    server, was_in_force
):
    """A case that failed before as well is the object's own fault: it is not in force, and the pod is ready."""
    server.create(CLUSTER, with_case(2, 3))
    if was_in_force:
        server.change(CLUSTER, "few", IN_FORCE, subresource="status")
    async with connected(server) as cluster:
        await cluster.seen()
        if not was_in_force:
            assert cluster.policies.ready() is None
            assert names(cluster) == set()
            return
        assert str(cluster.policies.ready()).startswith(
            "this version judges cases of policies in force differently\n"
            'ClusterAdmissionPolicy few: case "enough": expected allowed, got denied'
        )
        assert cluster.policies.refusal(CLUSTER, "few") is None
        server.change(CLUSTER, "few", {"spec": {"params": {"maximum": 3}}})
        await cluster.seen()
        assert cluster.policies.ready() is None
        assert names(cluster) == {"few"}
