"""Findings: the entries of a report for a verdict."""

import pytest

from webhook.engine import Outcome, Violation
from webhook.findings import findings

WRONG = Violation("spec.replicas", '"3" is a string', "it must be an integer", "correct its type")


@pytest.mark.parametrize(
    ("actions", "expected"),
    [
        ([{"Deny"}, {"Deny"}], [("a", "Deny")]),
        ([{"Audit"}, {"Deny"}, {"Warn"}], [("b", "Deny")]),
        ([{"Audit"}, {"Warn"}], [("a", "Audit")]),
        ([{"Warn", "Audit"}], [("a", "Warn")]),
    ],
)
def test_a_malformed_field_is_one_finding(actions, expected):
    """It has the action of the first policy that denies, else of the first policy that reads the field."""
    outcomes = [
        Outcome(name, frozenset(each), malformed=WRONG)
        for name, each in zip("abc", actions, strict=False)
    ]
    assert [(each.policy, each.action) for each in findings(outcomes)] == expected
