"""Policies of a ConfigMap that is watched: in force at once and as a whole, and kept whatever happens to it."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from prometheus_client import CollectorRegistry

from config.settings import Settings
from controller.reconcilers.resources import CONFIG_MAP
from gatewright.processes.policies_in_force import policies_of
from gatewright.processes.policy_tasks import carriers
from gatewright.testing.fake_apiserver import FakeApiServer
from kube.client import Client
from kube.watched import WatchedObject
from tests.waiting import eventually
from webhook.server.cluster_data import NAMESPACES
from webhook.server.cluster_policies import WhyNotInForce
from webhook.server.engine_in_force import Policies
from webhook.server.metrics import WebhookMetrics

NAMESPACE, NAME = "gatewright-system", "gatewright-policies"
SOURCE = f"ConfigMap {NAMESPACE}/{NAME}"
NEVER = 3600.0  # seconds between two looks at files: what is noticed sooner is noticed by the watch
POLICY = """\
apiVersion: gatewright.io/v1alpha1
kind: ClusterAdmissionPolicy
metadata: {{name: {name}}}
spec: {{policy: replica-limits}}
"""


def written(*names: str) -> str:
    """Return a policy set of policies with these names."""
    return "---\n".join(POLICY.format(name=name) for name in names)


def config_map(**data: str) -> dict:
    """Return the ConfigMap with policy sets by key."""
    sets = {f"{key}.yaml": text for key, text in data.items()}
    return {"metadata": {"name": NAME, "namespace": NAMESPACE}, "data": sets}


class Replica:
    """One process with the policies of the ConfigMap, which it follows."""

    def __init__(self, client: Client, *names: str) -> None:
        self.registry = CollectorRegistry()
        self.reported: list[WhyNotInForce | None] = []
        self.sources = [
            WatchedObject.of(client, CONFIG_MAP, NAMESPACE, name) for name in (NAME, *names)
        ]
        metrics = WebhookMetrics(self.registry)
        self.policies: Policies = policies_of(
            Settings(), metrics, [], NAMESPACE, config_maps=self.sources
        )

    async def follow(self) -> None:
        """Follow the ConfigMap, and note what is refused."""
        await self.policies.follow(
            on_refused=lambda: self.reported.append(self.policies.refused), seconds=NEVER
        )

    async def until_in_force(self, *names: str) -> None:
        """Wait until just the policies of these names are in force; there is no event for it."""
        await eventually(lambda: self.names() == set(names))

    async def until_ready_says(self, problem: str) -> None:
        """Wait until readiness names this problem."""
        await eventually(lambda: self.policies.ready() == problem)

    async def until_refused(self, times: int) -> None:
        """Wait until this many sets were refused."""
        await eventually(lambda: self.refused() == times)

    def names(self) -> set[str]:
        """Return the names of the policies in force, without the rules that are always in force."""
        engine = self.policies.engine
        bound = engine.policies if engine else ()
        return {each.name for each in bound if not each.policy.always}

    def refused(self) -> float | None:
        """Return how many sets were refused."""
        return self.registry.get_sample_value("gatewright_policy_reload_errors_total")


@pytest.fixture
async def server() -> AsyncIterator[FakeApiServer]:
    """An API server without the ConfigMap."""
    async with FakeApiServer() as fake:
        fake.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
        yield fake


@asynccontextmanager
async def following(*replicas: Replica) -> AsyncIterator[None]:
    """Run these processes while the context lasts."""
    running = [
        asyncio.create_task(work)
        for replica in replicas
        for work in (*(source.run() for source in replica.sources), replica.follow())
    ]
    yield
    for task in running:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)


@pytest.fixture
async def replicas(server: FakeApiServer) -> AsyncIterator[tuple[Replica, Replica]]:
    """Two processes."""
    async with Client(server.endpoint) as client:
        both = Replica(client), Replica(client)
        async with following(*both):
            yield both


@pytest.fixture
def replica(replicas: tuple[Replica, Replica]) -> Replica:
    """One of them."""
    return replicas[0]


async def test_nothing_is_judged_before_the_config_map_is_there(server, replica, caplog):
    """Readiness names it, and the log names it once."""
    caplog.set_level(logging.ERROR)
    assert replica.policies.ready() == f"{SOURCE}: not read yet"
    await replica.until_ready_says(f"{SOURCE}: does not exist")
    await asyncio.sleep(0.3)  # several looks
    server.create(CONFIG_MAP, config_map(preset=written("few")))
    await replica.until_in_force("few")
    assert replica.policies.ready() is None
    assert [each.getMessage() for each in caplog.records if each.name.endswith("policies")] == [
        f"the policies cannot be used: {SOURCE}: does not exist"
    ] * 2


async def test_a_change_is_in_force_in_all_replicas(server, replicas):
    """No polling is needed; both replicas report the same version of the set."""
    server.create(CONFIG_MAP, config_map(preset=written("few"), own=written("own")))
    versions = set()
    for names in (("few", "own"), ("fewer", "own"), ("fewest", "own")):
        server.change(CONFIG_MAP, NAME, config_map(preset=written(names[0])), NAMESPACE)
        for replica in replicas:
            await replica.until_in_force(*names)
        one, other = (replica.policies.version for replica in replicas)
        assert one == other
        for replica in replicas:
            shown = replica.registry.get_sample_value(
                "gatewright_policy_set_info", {"version": one}
            )
            assert shown == 1
        versions.add(one)
    assert len(versions) == 3


async def test_the_version_is_that_of_what_is_written(server, replica):
    """Labels do not change the version; an earlier set has its earlier version."""
    server.create(CONFIG_MAP, config_map(preset=written("few")))
    await replica.until_in_force("few")
    first = replica.policies.version
    server.change(CONFIG_MAP, NAME, {"metadata": {"labels": {"chart": "2"}}}, NAMESPACE)
    server.change(CONFIG_MAP, NAME, config_map(preset=written("fewer")), NAMESPACE)
    await replica.until_in_force("fewer")
    assert replica.policies.version != first
    server.change(CONFIG_MAP, NAME, config_map(preset=written("few")), NAMESPACE)
    await replica.until_in_force("few")
    assert replica.policies.version == first


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no policies in this key; remove it if its policies are to go"),
        ("# preset\n", "no policies in this key; remove it if its policies are to go"),
        (
            written("fewer").replace("replica-limits", "replica-limit"),
            "ClusterAdmissionPolicy fewer: spec.policy: no policy",
        ),
    ],
)
async def test_a_set_that_cannot_be_used_changes_nothing(server, replica, caplog, text, reason):
    """No key of the new set is used if one is invalid; log and readiness report it."""
    server.create(CONFIG_MAP, config_map(preset=written("few")))
    await replica.until_in_force("few")
    version = replica.policies.version
    server.change(CONFIG_MAP, NAME, config_map(own=written("own"), preset=text), NAMESPACE)
    await replica.until_refused(1)
    assert replica.names() == {"few"}
    assert replica.policies.ready() is None
    said = replica.policies.in_force()
    assert f"version {version}; a newer set cannot be used: {SOURCE}: preset.yaml" in said
    assert reason in said
    assert f"those before stay in force: {SOURCE}: preset.yaml" in caplog.text
    server.change(CONFIG_MAP, NAME, config_map(preset=written("fewer")), NAMESPACE)
    await replica.until_in_force("fewer", "own")
    assert "cannot be used" not in replica.policies.in_force()


async def test_policies_go_with_their_key_and_not_with_the_config_map(server, replica):
    """A ConfigMap without keys has no policies; a deleted ConfigMap keeps the last ones."""
    server.create(CONFIG_MAP, config_map(preset=written("few")))
    await replica.until_in_force("few")
    server.delete(CONFIG_MAP, NAME, NAMESPACE)
    await replica.until_refused(1)
    assert replica.names() == {"few"}
    assert replica.policies.in_force().endswith(f"cannot be used: {SOURCE}: does not exist")
    server.create(CONFIG_MAP, config_map())
    await replica.until_in_force()
    assert replica.policies.ready() is None


async def test_policies_outlive_the_api_server(server, replica):
    """An unavailable API server does not change the policies."""
    server.create(CONFIG_MAP, config_map(preset=written("few")))
    await replica.until_in_force("few")
    await server.stop()
    await asyncio.to_thread(replica.policies.refresh)
    assert replica.names() == {"few"}
    assert replica.policies.ready() is None


CASES = """\
policies: preset.yaml
cases: [{name: two, object: {kind: Deployment, spec: {replicas: %s}}, expect: allowed}]
"""


async def test_a_set_is_in_force_once_its_cases_pass(server, replica):
    """Until then a new pod is not ready, and a running one keeps the policies before."""
    server.create(CONFIG_MAP, config_map(preset=written("few"), cases=CASES % 200))
    await eventually(lambda: str(replica.policies.ready()).startswith(f"{SOURCE}: cases.yaml:2: "))
    assert 'case "two": expected allowed, got denied with code 403' in replica.policies.ready()
    await replica.until_refused(1)
    server.change(CONFIG_MAP, NAME, {"data": {"cases.yaml": CASES % 2}}, NAMESPACE)
    await replica.until_in_force("few")
    data = {"cases.yaml": CASES % 300, "preset.yaml": written("few", "new")}
    server.change(CONFIG_MAP, NAME, {"data": data}, NAMESPACE)
    await replica.until_refused(2)
    assert (replica.names(), replica.policies.ready()) == ({"few"}, None)
    assert 'case "two": expected allowed' in replica.policies.in_force()


async def test_cases_may_have_a_config_map_of_their_own(server):
    """They are about the set of the other one; nothing is in force before there are both."""
    async with Client(server.endpoint) as client:
        replica = Replica(client, "our-cases")
        async with following(replica):
            server.create(CONFIG_MAP, config_map(preset=written("few")))
            await replica.until_ready_says("ConfigMap gatewright-system/our-cases: does not exist")
            own = {"metadata": {"name": "our-cases", "namespace": NAMESPACE}}
            server.create(CONFIG_MAP, {**own, "data": {"cases.yaml": CASES % 2}})
            await replica.until_in_force("few")
            data = {"data": {"cases.yaml": CASES % 200}}
            server.change(CONFIG_MAP, "our-cases", data, NAMESPACE)
            failed = "ConfigMap gatewright-system/our-cases: cases.yaml:2: case"
            await eventually(lambda: failed in replica.policies.in_force())
            assert replica.names() == {"few"}


async def test_an_event_is_about_the_config_map_that_the_message_names(server):
    """Each gets its own lines; what names none of them is about the first."""
    async with Client(server.endpoint) as client:
        replica = Replica(client, "our-cases", "missing")
        for config_map_of_cases in (
            config_map(preset=written("few")),
            {"metadata": {"name": "our-cases"}},
        ):
            config_map_of_cases["metadata"]["namespace"] = NAMESPACE
            server.create(CONFIG_MAP, config_map_of_cases)
        async with following(replica):
            absent = "ConfigMap gatewright-system/missing: does not exist"
            await replica.until_ready_says(absent)
            failed = 'ConfigMap gatewright-system/our-cases: cases.yaml:2: case "many": …'
            message = f"{failed}\nConfigMap gatewright-system/gatewright-policies: no\n{failed}"

            def about(text: str) -> list[tuple[str, str]]:
                found = carriers(replica.sources, None, text)
                return [(each["metadata"]["name"], part) for each, part in found]

            assert about(failed) == [("our-cases", failed)]
            assert about(message) == [
                (NAME, "ConfigMap gatewright-system/gatewright-policies: no"),
                ("our-cases", f"{failed}\n{failed}"),
            ]
            for other in (absent, "production.cases.yaml:1: case"):
                assert about(other) == [(NAME, other)]


async def test_a_refused_set_is_reported_once_with_its_reason(server, replica):
    """A failed case has a reason of its own; what is in force again is not refused."""
    server.create(CONFIG_MAP, config_map(preset=written("few")))
    await replica.until_in_force("few")
    server.change(CONFIG_MAP, NAME, {"data": {"cases.yaml": CASES % 200}}, NAMESPACE)
    await eventually(lambda: len(replica.reported) == 1)
    server.change(CONFIG_MAP, NAME, {"data": {"cases.yaml": "{}"}}, NAMESPACE)
    await eventually(lambda: len(replica.reported) == 2)
    failed, invalid = replica.reported
    assert (failed.reason, invalid.reason) == ("CaseFailed", "Invalid")
    assert 'cases.yaml:2: case "two": expected allowed' in failed.message
    server.change(CONFIG_MAP, NAME, {"data": {"cases.yaml": CASES % 2}}, NAMESPACE)
    await eventually(lambda: replica.policies.refused is None)
    assert replica.reported == [failed, invalid]
