"""Every policy passes its cases."""

from pathlib import Path

import pytest

from tests.policies.trials import FILES, trials_of
from webhook.harness.trial import differences
from webhook.policy_sets.catalogue import catalogue


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_answer_is_the_expected_one(file: Path) -> None:
    """Each case of a policy gets exactly the expected response, for each of its kinds."""
    wrong = {f"{trial.where}: {trial.name}": differences(trial) for trial in trials_of(file)}
    assert {where: texts for where, texts in wrong.items() if texts} == {}


def test_every_policy_has_cases() -> None:
    """A policy without a file of cases is not finished."""
    assert {file.stem for file in FILES} >= {name.replace("-", "_") for name in catalogue()}
