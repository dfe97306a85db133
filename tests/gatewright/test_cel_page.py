"""The examples of docs/cel.md: each policy does what the cases beside it say."""

from pathlib import Path

import pytest

from webhook.harness.cases import load_trials
from webhook.harness.trial import differences
from webhook.policies import catalogue

PAGE = Path(__file__).parents[2] / "docs/cel.md"
CASES = sorted((PAGE.parent / "cel").glob("*.cases.yaml"))


@pytest.mark.parametrize("cases", CASES, ids=lambda path: path.name.partition(".")[0])
def test_an_example_does_what_its_cases_say(cases: Path) -> None:
    """Each case has the expected answer; each example allows or changes something."""
    trials = list(load_trials(cases, catalogue()))
    assert trials
    assert [line for trial in trials for line in differences(trial)] == []


def test_the_page_shows_every_example() -> None:
    """Ten of them; the first stands on the page as it is in its file."""
    page = PAGE.read_text()
    assert len(CASES) == 10
    for cases in CASES:
        assert f"(cel/{cases.name.replace('.cases', '')})" in page
    first = PAGE.parent / "cel/cost-center.yaml"
    assert first.read_text() in page
