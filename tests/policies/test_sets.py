"""The policy sets of config/policies: each passes its cases, and admits the samples intended for it."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from config.documents import documents_at, read_documents
from config.presets import case_file
from config.settings import Settings
from gatewright.checks.loaded_policies import PoliciesInForce
from gatewright.processes.planners import planners_of
from webhook.engine import Engine
from webhook.harness.case_file import CaseFile, ExpectedAnswer
from webhook.harness.cases import load_trials
from webhook.harness.trial import differences
from webhook.policy_sets.catalogue import catalogue
from webhook.policy_sets.policy_set import load

ROOT = Path(__file__).parents[2]
SETS = sorted((ROOT / "config/policies").glob("*.yaml"))
PLAIN_NGINX = ("my-webapp", "test-app", "test-webapp")


def cases_of(policies: Path) -> Path:
    """Return the case file of a policy set."""
    return case_file(policies.stem)


@pytest.mark.parametrize("policies", SETS, ids=lambda path: path.stem)
def test_every_answer_is_the_expected_one(policies: Path) -> None:
    """Each case of a set gets the expected response."""
    wrong = {
        trial.name: differences(trial) for trial in load_trials(cases_of(policies), catalogue())
    }
    assert {name: texts for name, texts in wrong.items() if texts} == {}


@pytest.mark.parametrize("policies", SETS, ids=lambda path: path.stem)
def test_every_policy_of_a_set_has_a_case_that_it_denies_or_patches(policies: Path) -> None:
    """A policy object that no case shows at work could be missing from the set unnoticed."""
    file = CaseFile.model_validate(yaml.safe_load(cases_of(policies).read_text()))
    expected = [case.expect for case in file.cases if isinstance(case.expect, ExpectedAnswer)]
    shown = {violation.policy for each in expected for violation in each.denied or ()}
    objects = list(yaml.safe_load_all(policies.read_text()))
    mutating = {
        object["metadata"]["name"]
        for object in objects
        if catalogue()[object["spec"]["policy"]].mutate is not None
    }
    assert shown == {each["metadata"]["name"] for each in objects} - mutating
    assert bool(mutating) == any(each.patched for each in expected)


@pytest.mark.parametrize("name", ["baseline", "restricted", "best-practices", "rbac"])
def test_the_samples_are_admitted(name: str) -> None:
    """They are admitted in their own namespace by each set without a namespace; plain nginx is not restricted."""
    policies = load(read_documents(ROOT / f"config/policies/{name}.yaml"), catalogue())
    engine = Engine(policies, planners_of(Settings(), "gatewright-system"))
    in_force = PoliciesInForce((), engine, {}, datetime(2026, 1, 1, tzinfo=UTC))
    judged = in_force.judge_documents(documents_at([ROOT / "config/samples"]), "shop")
    verdicts = {each.title: each.verdict for each in judged}
    denied = {f"WebApp shop/{each}" for each in PLAIN_NGINX} if name == "restricted" else set()
    assert {
        title for title, verdict in verdicts.items() if verdict in ("denied", "error")
    } == denied
    assert len(verdicts) == 15
