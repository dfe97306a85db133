"""A verdict on an object, by policy: what users see of its outcomes."""

from webhook.engine import Verdict, Violation

ByPolicy = list[tuple[str, tuple[Violation, ...]]]


def reported(verdict: Verdict) -> ByPolicy:
    """Return the violations, or the field of a wrong type, of each policy that applied."""
    assert [each.error for each in verdict.outcomes if each.error] == []
    return [(each.policy, each.reported) for each in verdict.outcomes]


def tolerated(verdict: Verdict) -> ByPolicy:
    """Return the violations that an update found there, of each policy that applied."""
    return [(each.policy, each.tolerated) for each in verdict.outcomes]
