"""The verdict on an object, by policy, as users see it."""

from webhook.engine import Verdict, Violation

ByPolicy = list[tuple[str, tuple[Violation, ...]]]


def reported(verdict: Verdict) -> ByPolicy:
    """Return the violations, or the field of a wrong type, of each policy that applied."""
    assert [each.error for each in verdict.outcomes if each.error] == []
    return [(each.policy, each.reported) for each in verdict.outcomes]


def tolerated(verdict: Verdict) -> ByPolicy:
    """Return the tolerated violations of each policy that applied."""
    return [(each.policy, each.tolerated) for each in verdict.outcomes]
