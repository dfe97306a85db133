"""The status of policy objects and exceptions: in force or not, with the reason; nothing is written twice."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from config.documents import read_documents
from controller.registration.enforcement_answers import Enforcement
from controller.registration.policy_statuses import PolicyStatuses
from controller.runtime.cache import Cache
from controller.runtime.types import ReconcileRequest
from gatewright.testing.fake_apiserver import FakeApiServer
from kube.client import Client
from kube.resource import Resource
from tests.waiting import WITHIN
from tests.webhook.policy_sets.on_a_cluster.in_force import crd
from webhook.engine import BoundPolicy
from webhook.policy_sets.bound_objects import bind
from webhook.policy_sets.catalogue import catalogue

BASES = Path(__file__).parents[3] / "config/crd/bases"
DEFINITIONS = [
    document.value
    for file in BASES.glob("gatewright.io_*.yaml")
    for document in read_documents(file)
]
CLUSTER, TENANT, EXCEPTION = (
    Resource("gatewright.io", "v1alpha1", plural, kind, namespaced=kind != "ClusterAdmissionPolicy")
    for plural, kind in (
        ("clusteradmissionpolicies", "ClusterAdmissionPolicy"),
        ("admissionpolicies", "AdmissionPolicy"),
        ("policyexceptions", "PolicyException"),
    )
)
HOME = "gatewright-system"
TODAY = datetime(2026, 11, 21, 12, tzinfo=UTC)
API_VERSION = "gatewright.io/v1alpha1"


def policy(
    name: str = "few",
    kind: str = "ClusterAdmissionPolicy",
    namespace: str | None = None,
    **spec: object,
):
    """A policy object for replica-limits, with the test's changes."""
    return {
        "apiVersion": API_VERSION,
        "kind": kind,
        "metadata": {"name": name} | ({"namespace": namespace} if namespace else {}),
        "spec": {"policy": "replica-limits", "params": {"maximum": 3}} | spec,
    }


def exception(namespace: str = HOME, expires: str = "2026-12-01T00:00:00Z", **entry: object):
    """An exception from it, with the test's changes."""
    return {
        "apiVersion": API_VERSION,
        "kind": "PolicyException",
        "metadata": {"name": "why-not", "namespace": namespace},
        "spec": {"reason": "moving", "expires": expires, "exceptions": [{"policy": "few"} | entry]},
    }


@pytest.fixture
async def server() -> AsyncIterator[FakeApiServer]:
    """An API server with our kinds."""
    async with FakeApiServer() as fake:
        for definition in DEFINITIONS:
            fake.define(definition)
        for namespace in (HOME, "shop"):
            fake.create(
                Resource("", "v1", "namespaces", "Namespace", namespaced=False),
                {"metadata": {"name": namespace}},
            )
        yield fake


class Statuses:
    """The reconciler of one kind, with a clock and policies of the test's."""

    def __init__(self, server: FakeApiServer, client: Client, resource: Resource) -> None:
        self.server, self.resource, self.now = server, resource, TODAY
        self.policies: Sequence[BoundPolicy] | None = ()
        self.refusals: dict[str, tuple[str, str]] = {}
        self.compiled = True
        self.widened = set[str]()
        self.enforced: dict[str, dict[str, str]] = {}
        self.cache = Cache(client, resource, ())
        self.cache.filter.keep_all()
        self.reconciler = PolicyStatuses(
            client,
            self.cache,
            catalogue(),
            lambda: self.policies,
            HOME,
            refusal=self.refusals.get,
            is_compiled=lambda key, uid, generation: self.compiled,
            is_widened=lambda key: key in self.widened,
            enforced=lambda key, status: self.enforced.get(key),
            now=lambda: self.now,
        )
        self._changed = asyncio.Event()
        self.cache.subscribe(lambda change: self._changed.set())

    async def reconciled(self, name: str, namespace: str = "") -> tuple[dict, timedelta | None]:
        """Reconcile when the cache is current; return the stored status, and the time of the next reconcile."""
        key = f"{namespace}/{name}" if namespace else name
        await self._seen(key, namespace, name)
        result = await self.reconciler.reconcile(ReconcileRequest(namespace or None, name))
        await self._seen(key, namespace, name)
        return self.server.get(self.resource, name, namespace).get(
            "status", {}
        ), result.requeue_after

    async def _seen(self, key: str, namespace: str, name: str) -> None:
        wanted = int(self.server.get(self.resource, name, namespace)["metadata"]["resourceVersion"])
        async with asyncio.timeout(WITHIN):
            while not self.cache.has_seen(key, wanted):
                self._changed.clear()
                await self._changed.wait()


@pytest.fixture
def statuses(server: FakeApiServer):
    """Creates the reconciler of one kind, with a running watch."""

    @asynccontextmanager
    async def running(resource: Resource) -> AsyncIterator[Statuses]:
        async with Client(server.endpoint) as client:
            made = Statuses(server, client, resource)
            watching = asyncio.gather(*(watch.run() for watch in made.cache.watches))
            await made.cache.wait_synced()
            yield made
            watching.cancel()

    return running


def condition(
    status: str, reason: str, message: str = "", *, generation: int = 1, since: datetime = TODAY
) -> dict:
    """The whole status of an exception with this condition Ready."""
    found = {
        "type": "Ready",
        "status": status,
        "reason": reason,
        "message": message,
        "observedGeneration": generation,
        "lastTransitionTime": since.isoformat().replace("+00:00", "Z"),
    }
    return {"observedGeneration": generation, "conditions": [found]}


def ready(*arguments: str, **options: Any) -> dict:
    """The whole status of a policy with this condition Ready, and its one action."""
    return condition(*arguments, **options) | {"actions": "Deny"}


def status_writes(server: FakeApiServer) -> int:
    """Count the writes so far."""
    return len(server.requests.writes)


@pytest.mark.parametrize(("resource", "namespace"), [(CLUSTER, ""), (TENANT, "shop")])
async def test_a_good_policy_is_in_force(server, statuses, resource, namespace):
    """The status reports it with its generation; a second reconcile writes nothing."""
    server.create(resource, policy(kind=resource.kind, namespace=namespace or None))
    async with statuses(resource) as running:
        assert await running.reconciled("few", namespace) == (ready("True", "InForce"), None)
        running.now += timedelta(hours=1)
        written = status_writes(server)
        assert written == 1
        assert await running.reconciled("few", namespace) == (ready("True", "InForce"), None)
        assert status_writes(server) == written


async def test_a_policy_that_is_sent_more_than_it_selects_says_so(server, statuses):
    """The condition is there as long as it holds, beside Ready."""
    server.create(CLUSTER, policy(kind=CLUSTER.kind))
    async with statuses(CLUSTER) as running:
        running.widened = {"few"}
        status, _ = await running.reconciled("few")
        assert [(each["type"], each["status"]) for each in status["conditions"]] == [
            ("Ready", "True"),
            ("Narrow", "False"),
        ]
        running.widened = set()
        assert await running.reconciled("few") == (ready("True", "InForce"), None)


@pytest.mark.parametrize(
    ("resource", "spec", "message"),
    [
        (
            CLUSTER,
            {"params": {"maximun": 3}},
            'spec.params.maximun: unknown parameter; did you mean "maximum"?',
        ),
        (
            CLUSTER,
            {"policy": "replica-limit"},
            'spec.policy: no policy "replica-limit"; did you mean "replica-limits"?',
        ),
        (
            CLUSTER,
            {"match": {"any": [{"kinds": ["Deploymnt", "CronJob"]}]}, "params": {}},
            'spec.match.any[0].kinds: replica-limits does not look at "Deploymnt"; did you mean "Deployment"?\n'
            'spec.match.any[0].kinds: replica-limits does not look at "CronJob"; known: ',
        ),
        (
            TENANT,
            {"policy": "webapp-labels", "params": {}},
            "spec.policy: webapp-labels changes objects; an AdmissionPolicy can only deny",
        ),
    ],
    ids=["a parameter", "a policy", "two kinds", "a tenant's that would change objects"],
)
async def test_the_status_of_a_bad_policy_has_the_error(server, statuses, resource, spec, message):
    """The status has path, error and suggestion, like a denial."""
    namespace = "shop" if resource is TENANT else ""
    server.create(resource, policy(kind=resource.kind, namespace=namespace or None, **spec))
    async with statuses(resource) as running:
        status, again = await running.reconciled("few", namespace)
        assert again is None
        found = status["conditions"][0]["message"]
        assert found.startswith(message) if message.endswith(": ") else found == message
        assert status == ready("False", "Invalid", found)


async def test_the_status_follows_the_object(server, statuses):
    """A bad edit and its correction, each with its generation and the time it changed."""
    server.create(CLUSTER, policy())
    async with statuses(CLUSTER) as running:
        await running.reconciled("few")
        later = running.now = TODAY + timedelta(minutes=5)
        server.change(CLUSTER, "few", {"spec": {"params": {"maximum": -1}}})
        message = "spec.params.maximum: -1: should be greater than or equal to 0"
        assert (await running.reconciled("few"))[0] == ready(
            "False", "Invalid", message, generation=2, since=later
        )
        server.change(CLUSTER, "few", {"spec": {"params": {"maximum": 4}}})
        assert (await running.reconciled("few"))[0] == ready(
            "True", "InForce", generation=3, since=later
        )


async def test_the_status_of_a_conflicting_policy_names_the_conflict(server, statuses):
    """A valid policy that conflicts with another is reported as not in force."""
    server.create(CLUSTER, policy())
    async with statuses(CLUSTER) as running:
        running.refusals["few"] = "Conflict", "few and fewer differ"
        assert (await running.reconciled("few"))[0] == ready(
            "False", "Conflict", "few and fewer differ"
        )
        running.refusals.clear()
        assert (await running.reconciled("few"))[0] == ready("True", "InForce")


async def test_the_status_of_a_policy_with_cases_waits_for_them(server, statuses):
    """It is never Ready before its cases have passed."""
    object = policy()
    object["spec"]["cases"] = [{"name": "none", "expect": "allowed"}]
    server.create(CLUSTER, object)
    async with statuses(CLUSTER) as running:
        running.compiled = False
        assert await running.reconciled("few") == (
            {"observedGeneration": -1},
            timedelta(milliseconds=200),
        )
        running.compiled = True
        running.refusals["few"] = "CaseFailed", 'case "none": expected allowed'
        assert (await running.reconciled("few"))[0] == ready(
            "False", "CaseFailed", 'case "none": expected allowed'
        )


async def test_the_status_tells_whether_a_policy_is_enforced(server, statuses):
    """It has what was measured as its condition Enforced."""
    server.create(CLUSTER, policy())
    async with statuses(CLUSTER) as running:
        running.enforced["few"] = Enforcement("Unknown", "Forbidden", "a right").condition()
        _, enforced = (await running.reconciled("few"))[0]["conditions"]
        times = {"observedGeneration": 1, "lastTransitionTime": enforced["lastTransitionTime"]}
        assert enforced == {
            "type": "Enforced",
            "status": "Unknown",
            "reason": "Forbidden",
            "message": "a right",
            **times,
        }


def rule(*kinds: str) -> dict[str, object]:
    """The spec of a policy with a rule of its own for these kinds."""
    rules = [{"expression": "false", "message": "no"}]
    match = {"any": [{"kinds": [*kinds]}]}
    return {"validations": rules, "match": match}


async def test_the_status_tells_that_no_api_serves_the_kind(server, statuses):
    """It changes when an API does, and is written once until then."""
    server.create(CLUSTER, policy() | {"spec": rule("example.com/v1/Issuer")})
    text = "no API serves example.com/v1/Issuer; the policy takes effect when one does"
    minute = timedelta(minutes=1)
    async with statuses(CLUSTER) as running:
        for _ in range(2):
            assert await running.reconciled("few") == (ready("False", "NotServed", text), minute)
        assert status_writes(server) == 1
        server.define(crd("Issuer", "issuers", "Cluster", {"type": "object"}))
        assert await running.reconciled("few") == (ready("True", "InForce"), None)


@pytest.mark.parametrize(
    ("resource", "word", "text"),
    [
        (
            CLUSTER,
            "example.com/v1beta1/Issuer",
            "no API serves {word}; the kind is served as issuerz.example.com/v1/Issuer",
        ),
        (
            CLUSTER,
            "example.com/v1/Issuer",
            "no API serves {word}; the kind is served as issuerz.example.com/v1/Issuer",
        ),
        (
            TENANT,
            "issuerz.example.com/v1/Issuer",
            "Issuer is cluster-scoped; an AdmissionPolicy judges objects in its namespace. "
            "Use a ClusterAdmissionPolicy",
        ),
        (CLUSTER, "issuerz.example.com/v1/Issuer", None),
    ],
    ids=["another version", "an irregular plural", "a tenant's", "as it is served"],
)
async def test_the_status_tells_how_a_kind_is_served(server, statuses, resource, word, text):
    """A policy whose other kinds are served is in force for these."""
    server.define(crd("Issuer", "issuerz", "Cluster", {"type": "object"}))
    namespace = "shop" if resource is TENANT else ""
    message = "" if text is None else text.format(word=word)
    expected = {
        "few": ready("False", "NotServed", message) if text else ready("True", "InForce"),
        "more": ready("True", "InForce", message),
    }
    for name, kinds in (("few", (word,)), ("more", (word, "Pod"))):
        written = policy(name, resource.kind, namespace or None)
        server.create(resource, written | {"spec": rule(*kinds)})
    async with statuses(resource) as running:
        for name, status in expected.items():
            assert (await running.reconciled(name, namespace))[0] == status


async def test_a_deleted_object_gets_no_status(server, statuses):
    """Nothing is written for a deleted object."""
    async with statuses(CLUSTER) as running:
        assert (
            await running.reconciler.reconcile(ReconcileRequest(None, "few"))
        ).requeue_after is None
    assert status_writes(server) == 0


async def test_the_status_has_the_actions_as_kubectl_lists_them(server, statuses):
    """A printed column cannot join a list."""
    server.create(CLUSTER, policy(validationActions=["Warn", "Audit"]))
    async with statuses(CLUSTER) as running:
        assert (await running.reconciled("few"))[0]["actions"] == "Warn, Audit"


async def test_an_exception_is_looked_at_again_when_it_ends(server, statuses):
    """It is in force until its expiry time, and expired from then on, without an event."""
    server.create(EXCEPTION, exception(expires="2026-11-21T12:00:10Z"))
    async with statuses(EXCEPTION) as running:
        running.policies = [bind(policy(), catalogue())]
        assert await running.reconciled("why-not", HOME) == (
            condition("True", "InForce"),
            timedelta(seconds=10),
        )
        running.now += timedelta(seconds=9)
        assert await running.reconciled("why-not", HOME) == (
            condition("True", "InForce"),
            timedelta(seconds=1),
        )
        assert status_writes(server) == 1
        ended = running.now = running.now + timedelta(seconds=1)
        expired = condition(
            "False",
            "Expired",
            "it expired at 2026-11-21T12:00:10Z. Delete it, or set a later spec.expires",
            since=ended,
        )
        assert await running.reconciled("why-not", HOME) == (expired, None)
        assert await running.reconciled("why-not", HOME) == (expired, None)
        assert status_writes(server) == 2


TENANTS = policy(kind="AdmissionPolicy", namespace="shop")


@pytest.mark.parametrize(
    ("from_", "namespace", "entry", "message"),
    [
        (policy(), HOME, {}, None),
        (TENANTS, "shop", {}, None),
        (policy(), HOME, {"params": {"maximum": 20}}, None),
        (
            policy(),
            HOME,
            {"policy": "fewer"},
            'spec.exceptions[0].policy: no policy object "fewer"; did you mean "few"?',
        ),
        (
            policy(),
            HOME,
            {"params": {"maximun": 20}},
            'spec.exceptions[0].params.maximun: unknown parameter; did you mean "maximum"?',
        ),
        (
            policy(),
            "shop",
            {},
            f'spec.exceptions[0].policy: "few" is a cluster policy; exceptions from it count in namespace {HOME} only',
        ),
        (
            TENANTS,
            HOME,
            {},
            'spec.exceptions[0].policy: "few" is a policy of namespace shop; exceptions from it count there only',
        ),
        (TENANTS, "default", {}, 'spec.exceptions[0].policy: no policy object "few"'),
        (
            policy(),
            HOME,
            {"kinds": ["Pod", "Service"]},
            "spec.exceptions[0].kinds: few judges no Pod or Service",
        ),
    ],
    ids=[
        *(
            "from a cluster policy",
            "from a tenant's own",
            "with parameters",
            "an unknown policy",
            "a wrong parameter",
        ),
        *(
            "from a cluster policy, elsewhere",
            "from a tenant's, elsewhere",
            "from another tenant's",
        ),
        "for kinds that the policy does not judge",
    ],
)
async def test_the_status_of_an_exception_without_effect_has_the_reason(
    server, statuses, from_, namespace, entry, message
):
    """The status reports that an exception has no effect."""
    server.create(EXCEPTION, exception(namespace, **entry))
    async with statuses(EXCEPTION) as running:
        running.policies = [bind(from_, catalogue())]
        status, _ = await running.reconciled("why-not", namespace)
        assert status == (
            condition("False", "Invalid", message) if message else condition("True", "InForce")
        )


async def test_an_exception_waits_for_the_policies(server, statuses):
    """Until policies are loaded, it is unknown which policies it exempts from, and no status is written."""
    server.create(EXCEPTION, exception())
    async with statuses(EXCEPTION) as running:
        running.policies = None
        assert await running.reconciled("why-not", HOME) == ({"observedGeneration": -1}, None)
        running.policies = [bind(policy(), catalogue())]
        assert (await running.reconciled("why-not", HOME))[0] == condition("True", "InForce")


async def test_type_errors_of_rules_are_in_the_status(server, statuses):
    """The rule stays in force, as it was stored; the status says what is wrong, as Kubernetes' does."""
    spec = {
        "match": {"any": [{"kinds": ["Deployment"]}]},
        "validations": [{"expression": "object.spec.replica < 2", "message": "few"}],
    }
    server.create(CLUSTER, policy() | {"spec": spec})
    async with statuses(CLUSTER) as running:
        status, _ = await running.reconciled("few")
        assert status == ready("True", "InForce") | {
            "typeChecking": {
                "expressionWarnings": [
                    {
                        "fieldRef": "spec.validations[0].expression",
                        "warning": "line 1, column 13: undefined field 'replica' of "
                        "'DeploymentSpec'; did you mean \"replicas\"?; checked against Deployment",
                    }
                ]
            }
        }
        before = status_writes(server)
        await running.reconciled("few")
        assert status_writes(server) == before
