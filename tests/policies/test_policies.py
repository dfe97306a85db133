"""Every policy does what its cases say."""

from pathlib import Path

import pytest

from webhook.harness.cases import Trial, load_trials
from webhook.harness.trial import differences
from webhook.policies import catalogue

HERE = Path(__file__).parent
TRIALS = [trial for file in sorted(HERE.glob("*.yaml")) for trial in load_trials(file, catalogue())]


@pytest.mark.parametrize("trial", TRIALS, ids=lambda trial: f"{Path(trial.where).stem}: {trial.name}")
def test_case(trial: Trial) -> None:
    """The answer is the expected one, whole."""
    assert differences(trial) == []


def test_every_policy_has_cases() -> None:
    """A policy without a file of cases is not finished."""
    assert {file.stem for file in HERE.glob("*.yaml")} >= {name.replace("-", "_") for name in catalogue()}
