"""Policies are in force only with their cases: a failing case keeps what was in force, or a pod unready."""

import asyncio
import os
from itertools import islice
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from config.presets import case_file, presets
from config.settings import Settings
from controller.runtime.events import EVENT
from controller.runtime.leader import LeaseSettings
from controller.runtime.manager import Manager
from gatewright.processes.policies_in_force import policies_of
from gatewright.processes.policy_tasks import PolicyTasks
from gatewright.processes.proofs import Proofs
from gatewright.processes.registries import image_look_ups
from gatewright.testing.fake_apiserver import FakeApiServer
from kube.resource import Resource
from tests.waiting import eventually
from webhook.engine import Policy
from webhook.engine.exceptions import HOME
from webhook.harness.cases import load_trials
from webhook.harness.mutated_code import changed_policies
from webhook.harness.trial import differences
from webhook.policy_sets.catalogue import catalogue
from webhook.policy_sets.policy_set import FailedCasesError
from webhook.server.engine_in_force import Policies
from webhook.server.metrics import WebhookMetrics

SET = """\
apiVersion: gatewright.io/v1alpha1
kind: ClusterAdmissionPolicy
metadata: {name: few}
spec: {policy: replica-limits, params: {maximum: %s}}
"""
CASES = """\
policies: few.yaml
cases:
  - name: three
    object: {kind: Deployment, spec: {replicas: 3}}
    expect: allowed
"""

NAMESPACE = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
EVERY = int(os.environ.get("EVERY", "7"))  # of all mutants, this one is tried; 1: all


def load(directory: Path) -> Policies:
    """Return the policies of a directory, as a process loads them."""
    metrics = WebhookMetrics(CollectorRegistry())
    return policies_of(Settings(policies=[directory]), metrics, [], HOME)


def maximum(policies: Policies) -> int:
    """Return the parameter in force."""
    (found,) = (each for each in policies.engine.policies if each.name == "few")
    return found.params.model_dump()["maximum"]


def test_a_changed_set_whose_case_fails_leaves_the_one_before_in_force(tmp_path):
    """The log, the metric and the page of the process name the case; a corrected set is in force."""
    (tmp_path / "few.yaml").write_text(SET % 3)
    (tmp_path / "cases.yaml").write_text(CASES)
    policies = load(tmp_path)
    assert maximum(policies) == 3
    (tmp_path / "few.yaml").write_text(SET % 2)
    policies.refresh()
    assert maximum(policies) == 3
    assert policies.ready() is None
    assert 'case "three": expected allowed, got denied with code 403' in policies.in_force()
    (tmp_path / "few.yaml").write_text(SET % 4)
    policies.refresh()
    assert maximum(policies) == 4
    assert "case" not in policies.in_force()


def test_a_changed_case_is_run_before_the_set_that_it_tests_is_in_force(tmp_path):
    """New cases alone can keep a set from being replaced, and from being loaded at a start."""
    (tmp_path / "few.yaml").write_text(SET % 3)
    (tmp_path / "cases.yaml").write_text(CASES.replace("replicas: 3", "replicas: 5"))
    with pytest.raises(FailedCasesError, match='case "three"'):
        load(tmp_path)


def mutants(preset: str) -> list[tuple[str, Policy]]:
    """Return each mutant of the preset's policies that changes the verdict of one of its cases."""
    trials = list(load_trials(case_file(preset), catalogue()))
    found = []
    for name in {each.policy.name for each in trials[0].engine.policies}:
        for description, policy in islice(changed_policies(catalogue()[name]), 0, None, EVERY):
            if not isinstance(policy, Policy):
                continue
            changed = load_trials(case_file(preset), {**catalogue(), name: policy})
            try:
                is_noticed = any(differences(each) for each in changed)
            except Exception:  # noqa: BLE001  # a mutant may raise anything
                is_noticed = True
            if is_noticed:
                found.append((description, policy))
    return found


@pytest.mark.long
@pytest.mark.parametrize("preset", presets())
def test_each_mutant_that_changes_a_verdict_keeps_a_pod_from_being_ready(preset):
    """With the preset as the chart installs it: its cases are run by --preset-cases."""
    changed = mutants(preset)
    assert changed
    for description, policy in changed:
        proofs = Proofs(Settings(preset_cases=[preset]), {**catalogue(), policy.name: policy}, HOME)
        with pytest.raises(Exception) as caught:  # noqa: PT011
            proofs.read()
        assert str(caught.value), description


async def test_a_failed_case_of_a_file_is_an_event_about_the_lease(tmp_path):
    """A file has no object; `kubectl get events` tells, as of a ConfigMap."""
    (tmp_path / "few.yaml").write_text(SET % 3)
    (tmp_path / "cases.yaml").write_text(CASES)
    policies = load(tmp_path)
    (tmp_path / "few.yaml").write_text(SET % 2)
    policies.refresh()
    settings, registry = Settings(), CollectorRegistry()
    async with FakeApiServer() as server, image_look_ups(settings, registry, 1.0) as images:
        server.create(NAMESPACE, {"metadata": {"name": HOME}})
        manager = Manager(
            server.endpoint,
            registry,
            identity="leader",
            lease=LeaseSettings(HOME, "gatewright-controller-lock"),
        )
        PolicyTasks(settings, manager, policies, HOME, (), images)
        stop = asyncio.Event()
        running = asyncio.create_task(manager.run(stop))
        await eventually(lambda: server.list(EVENT))
        stop.set()
        await running
        (event,) = server.list(EVENT)
    assert event["reason"] == "CaseFailed"
    assert event["regarding"]["kind"] == "Lease"
    assert event["regarding"]["name"] == "gatewright-controller-lock"
    assert 'case "three": expected allowed, got denied with code 403' in event["note"]
