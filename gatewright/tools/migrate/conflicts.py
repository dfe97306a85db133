"""Leave out mutations that could not be in force together."""

from collections.abc import Sequence

from gatewright.tools.migrate.results import ConvertedPolicy, Unconverted
from webhook.engine import BoundPolicy
from webhook.engine.conflicts import without_conflicts
from webhook.policy_sets.bound_objects import bind
from webhook.policy_sets.catalogue import catalogue

NEAREST = "one mutation for both, or matches that do not overlap"


def leave_out_conflicts(
    converted: Sequence[ConvertedPolicy],
) -> tuple[list[ConvertedPolicy], list[Unconverted]]:
    """Return the policies that can be in force together, and the others with the reason.

    Of mutations that set one field to different values, the first is kept.
    """
    bound = [bind(each.object, catalogue()) for each in converted]
    policies = [each for each in bound if isinstance(each, BoundPolicy)]
    _, conflicts = without_conflicts(policies)
    reasons = {id(each.policy): each.text.partition("\n")[0] for each in conflicts}
    left_out = [
        Unconverted(
            migrated.origin, f"another mutation conflicts with it: {reasons[id(policy)]}", NEAREST
        )
        for migrated, policy in zip(converted, bound, strict=True)
        if id(policy) in reasons
    ]
    kept = [
        migrated
        for migrated, policy in zip(converted, bound, strict=True)
        if id(policy) not in reasons
    ]
    return kept, left_out
