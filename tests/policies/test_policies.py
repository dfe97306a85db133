"""Every policy passes its cases."""

from pathlib import Path

import pytest

from tests.policies.trials import FILES, trials_of
from webhook.harness.trial import differences
from webhook.policy_sets.catalogue import catalogue


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_answer_is_the_expected_one(file: Path) -> None:
    """Each case of a policy gets exactly the expected response, for each of its kinds."""
    wrong = [
        f"{trial.where}: {trial.name}: {difference}"
        for trial in trials_of(file)
        for difference in differences(trial)
    ]
    assert wrong == [], (
        "correct the policy, or these cases: "
        f"`.venv/bin/gatewright test tests/policies/{file.name}` prints each"
    )


def test_every_policy_has_cases() -> None:
    """A policy without a file of cases is not finished."""
    missing = {name.replace("-", "_") for name in catalogue()} - {file.stem for file in FILES}
    assert missing == set(), "write the cases of these policies in tests/policies/<name>.yaml"
