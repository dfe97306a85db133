"""The examples of docs/cel.md pass their cases."""

from pathlib import Path

import pytest

from webhook.harness.cases import load_trials
from webhook.harness.trial import differences
from webhook.policy_sets.catalogue import catalogue

PAGE = Path(__file__).parents[2] / "docs/cel.md"
CASES = sorted((PAGE.parent / "cel").glob("*.cases.yaml"))


@pytest.mark.parametrize("cases", CASES, ids=lambda path: path.name.partition(".")[0])
def test_an_example_passes_its_cases(cases: Path) -> None:
    """Each case gets the expected answer, and at least one is allowed or changed."""
    trials = list(load_trials(cases, catalogue()))
    assert trials
    assert [line for trial in trials for line in differences(trial)] == []


def test_the_page_shows_every_example() -> None:
    """There are ten examples, and the page has the first one verbatim."""
    page = PAGE.read_text()
    assert len(CASES) == 10
    for cases in CASES:
        assert f"(cel/{cases.name.replace('.cases', '')})" in page
    first = PAGE.parent / "cel/cost-center.yaml"
    assert first.read_text() in page
