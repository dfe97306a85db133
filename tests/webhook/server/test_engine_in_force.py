"""Policies from files; only valid sets come into force."""

import asyncio
import logging

import pytest
from prometheus_client import CollectorRegistry

from config.documents import DocumentError
from kube.store import Store
from tests.waiting import WITHIN, eventually
from tests.webhook.server.conftest import NAMES, bind
from webhook.engine import Engine
from webhook.policy_sets.catalogue import catalogue
from webhook.policy_sets.policy_set import PolicySet
from webhook.server.cluster_policies import RESOURCES, PolicyObjects
from webhook.server.engine_in_force import Policies
from webhook.server.metrics import WebhookMetrics
from webhook.server.policy_files import policy_set_of


@pytest.fixture
def file(tmp_path):
    """Write a file with a number of policies."""
    return tmp_path / "policies.yaml"


@pytest.fixture
def registry() -> CollectorRegistry:
    """The metrics."""
    return CollectorRegistry()


@pytest.fixture
def metrics(registry) -> WebhookMetrics:
    """The metrics of the webhook."""
    return WebhookMetrics(registry)


@pytest.fixture
def start(file, metrics):
    """Return the loader of the policies in that file and of the objects in stores."""

    def load(*stores: Store) -> Policies:
        objects = PolicyObjects(stores, catalogue(), metrics)
        return Policies(
            [file],
            lambda: some(int(file.read_text())),
            lambda found, before: Engine(found.policies, before=before),
            objects,
            metrics,
        )

    return load


def some(number: int) -> PolicySet:
    """Return a set of this many policies."""
    return PolicySet(tuple(bind(NAMES, name=str(each)) for each in range(number)))


@pytest.mark.parametrize(("text", "reason"), [(None, "No such file"), ("three", "three")])
def test_a_missing_or_wrong_file_at_the_start_is_an_error(start, file, text, reason):
    """The process ends with the loader's error."""
    if text:
        file.write_text(text)
    with pytest.raises((OSError, ValueError), match=reason):
        start()


def test_a_change_comes_into_force(start, file, registry):
    """Each new content creates a new engine; unchanged content keeps it."""
    file.write_text("1")
    policies = start()
    assert policies.engine is None
    assert policies.ready() == "not loaded yet"
    policies.refresh()
    first = policies.engine
    policies.refresh()
    assert policies.engine is first
    assert policies.ready() is None
    file.write_text("2")
    policies.refresh()
    assert policies.engine
    assert len(policies.engine.policies) == 2
    assert registry.get_sample_value("gatewright_policies") == 2


def test_findings_of_a_policy_that_is_gone_are_no_longer_counted(start, file, registry, metrics):
    """Other policies keep their counts; a policy that comes back counts from zero."""

    def counted(policy: str) -> float | None:
        labels = {"policy": policy, "finding": "denied"}
        return registry.get_sample_value("gatewright_policy_findings_total", labels)

    file.write_text("0")
    policies = start()
    for number, expected in (("2", (1, 1)), ("1", (2, None)), ("2", (3, 1))):
        file.write_text(number)
        policies.refresh()
        for bound in policies.engine.policies:
            metrics.findings(bound.title, "denied").inc()
        assert (counted("0"), counted("1")) == expected


def test_an_invalid_change_keeps_the_current_set(start, file, registry, caplog):
    """The error is logged and counted once, and the webhook stays ready."""
    file.write_text("1")
    policies = start()
    policies.refresh()
    good = policies.engine
    file.write_text("x")
    caplog.set_level(logging.ERROR)
    for _ in range(3):
        policies.refresh()
    assert policies.engine is good
    assert policies.ready() is None
    assert registry.get_sample_value("gatewright_policy_reload_errors_total") == 1
    assert len(caplog.records) == 1
    file.unlink()
    policies.refresh()
    assert policies.engine is good


DEFAULT = """\
apiVersion: gatewright.io/v1alpha1
kind: ClusterAdmissionPolicy
metadata: {{name: {}}}
spec: {{policy: resource-defaults, params: {{limits: {{cpu: "{}"}}}}}}
---
"""


def test_of_a_file_with_a_conflict_all_other_policies_are_in_force(load, file, caplog):
    """The later one is logged, and named in the page of the process, until the conflict ends."""
    file.write_text("".join(DEFAULT.format(*pair) for pair in ((("a"), 1), ("b", 2), ("c", 1))))
    policies = load(file)
    assert names_of(policies) == {"a", "c"}
    text = policies.refusal(RESOURCES[0], "b").message
    assert text.startswith("a and b set Pod spec.containers[name=container].resources.limits.cpu")
    assert policies.problems() == {(RESOURCES[0], "b")}
    assert f"; not in force: {text}" in policies.in_force()
    assert [each.getMessage() for each in caplog.records if each.levelname == "ERROR"] == [
        f"policy b is not in force: {text}"
    ]
    file.write_text("".join(DEFAULT.format(*pair) for pair in (("a", 2), ("b", 2))))
    assert names_of(policies) == {"a", "b"}
    assert policies.refusal(RESOURCES[0], "b") is None
    assert policies.problems() == set()


def test_an_invalid_file_keeps_no_object_of_the_cluster_out_of_force(start, file):
    """The object comes into force beside the last valid version of the file."""
    file.write_text("1")
    store = Store(RESOURCES[0])
    store.known.set()
    policies = start(store)
    policies.refresh()
    file.write_text("x")
    policies.refresh()
    about = {"apiVersion": "gatewright.io/v1alpha1", "kind": "ClusterAdmissionPolicy"}
    metadata = {"name": "few", "uid": "1", "resourceVersion": "1", "generation": 1}
    metadata["creationTimestamp"] = "2026-11-21T00:00:00Z"
    store.put(about | {"metadata": metadata, "spec": {"policy": "replica-limits"}})
    policies.refresh()
    assert {each.name for each in policies.engine.policies} == {"0", "few"}


POLICY = """
apiVersion: gatewright.io/v1alpha1
kind: ClusterAdmissionPolicy
metadata: {name: few}
spec: {policy: replica-limits}
"""
EMPTY = ["", "---\n", "# no policies\n", "{apiVersion: v1, kind: List, items: []}\n"]


@pytest.fixture
def load(registry):
    """Return the loader of policies from real files."""

    def from_files(*paths) -> Policies:
        metrics = WebhookMetrics(registry)
        return Policies(
            paths,
            lambda: policy_set_of(paths, catalogue()),
            lambda found, before: Engine(found.policies, before=before),
            PolicyObjects([], catalogue(), metrics),
            metrics,
        )

    return from_files


def names_of(policies: Policies) -> set[str]:
    """Return the names of the policies in force after a refresh."""
    policies.refresh()
    return {each.name for each in policies.engine.policies}


@pytest.mark.parametrize("text", EMPTY)
def test_a_file_that_holds_nothing_any_more_keeps_its_policies(load, file, registry, caplog, text):
    """The file may be incomplete: the error is logged and counted until it has policies again."""
    file.write_text(POLICY)
    policies = load(file)
    assert names_of(policies) == {"few"}
    file.write_text(text)
    assert names_of(policies) == names_of(policies) == {"few"}
    assert registry.get_sample_value("gatewright_policy_reload_errors_total") == 1
    assert [each.getMessage() for each in caplog.records if each.levelno >= logging.ERROR] == [
        f"the policies cannot be used, those before stay in force: {file}: no policies in this "
        "file; leave it out of --policies if there are to be none"
    ]
    file.write_text(POLICY.replace("few", "fewer"))
    assert names_of(policies) == {"fewer"}


@pytest.mark.parametrize("text", EMPTY)
def test_one_of_two_files_that_holds_nothing_keeps_its_policies(load, tmp_path, caplog, text):
    """Removing a file from the directory takes its policies out of force, even the last file."""
    first, second = tmp_path / "a.yaml", tmp_path / "b.yaml"
    first.write_text(POLICY)
    second.write_text(POLICY.replace("few", "fewer"))
    policies = load(tmp_path)
    assert names_of(policies) == {"few", "fewer"}
    second.write_text(text)
    assert names_of(policies) == {"few", "fewer"}
    assert [each.getMessage() for each in caplog.records if each.levelno >= logging.ERROR] == [
        f"the policies cannot be used, those before stay in force: {second}: no policies in this "
        "file; remove it if its policies are to go"
    ]
    second.unlink()
    assert names_of(policies) == {"few"}
    first.unlink()
    assert names_of(policies) == set()


@pytest.mark.parametrize("text", EMPTY)
def test_a_file_that_holds_nothing_at_the_start_is_an_error(load, file, text):
    """A named file must contain policies."""
    file.write_text(text)
    with pytest.raises(DocumentError, match="no policies in this file"):
        load(file)


def test_an_empty_directory_has_no_policies(load, tmp_path):
    """Without a preset, the chart mounts an empty directory."""
    assert names_of(load(tmp_path)) == set()


async def test_a_file_that_changes_before_the_objects_are_known_is_loaded_afterwards(start, file):
    """Waiting does not block the loop, and ends as soon as the objects are known."""
    file.write_text("1")
    store, in_force = Store(RESOURCES[0]), asyncio.Event()
    policies = start(store)
    file.write_text("2")
    async with asyncio.timeout(WITHIN), asyncio.TaskGroup() as group:
        following = group.create_task(policies.follow(in_force.set, seconds=60))
        await eventually(lambda: policies.ready() != "not loaded yet", every=0)
        assert policies.ready() == "policy objects of the cluster: not read yet"
        store.known.set()
        await in_force.wait()
        following.cancel()
    assert policies.ready() is None
    assert policies.engine
    assert len(policies.engine.policies) == 2
