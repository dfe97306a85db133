"""The fix that a policy proposes for a violation resolves it."""

from dataclasses import replace

import pytest

from config.edits import replace_at
from tests.policies.trials import FILES, trials_of
from webhook.engine.violation import UNSET, steps_of
from webhook.harness.reviews import ask

FIXABLE = {  # policies whose violations `check --fix` fixes
    "autoscaler_bounds",
    "capabilities",
    "host_namespaces",
    "image_pull_policy",
    "interactive_containers",
    "pod_security",
    "privilege_escalation",
    "privileged_containers",
    "proc_mount",
    "read_only_root_filesystem",
    "replica_limits",
    "run_as_non_root",
    "seccomp_profiles",
    "service_account_tokens",
    "windows_host_process",
}


def fixable(trial):
    """The violations of a trial's own object that a value fixes."""
    violations = (
        violation
        for outcome in ask(trial.engine, trial.admission, trial.looked_up).outcomes
        for violation in outcome.violations
    )
    return [
        violation
        for violation in violations
        if violation.fix_value is not UNSET and violation.holder is not None and not violation.of
    ]


def fixed(trial, violation):
    """The trial with the field of a violation as it should be."""
    path = (*violation.holder.steps(), *steps_of(violation.field))
    object = replace_at(trial.admission.object, path, violation.fix_value)
    return replace(trial, admission=replace(trial.admission, object=object))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_fix_removes_its_violation(file):
    """In each denied case, the violation is gone after its value is set."""
    trials = [each for each in trials_of(file) if each.admission.object is not None]
    found = [(trial, violation) for trial in trials for violation in fixable(trial)]
    for trial, violation in found:
        left = fixable(fixed(trial, violation))
        assert violation.key not in [each.key for each in left], (trial.name, violation.message)
    assert bool(found) is (file.stem in FIXABLE)
