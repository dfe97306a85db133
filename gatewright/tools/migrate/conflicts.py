"""Leave out mutations that could not be in force together."""

from collections.abc import Sequence

from gatewright.tools.migrate.results import ConvertedPolicy, Unconverted
from webhook.engine import BoundPolicy, Engine
from webhook.engine.conflicts import ConflictingPoliciesError
from webhook.policy_sets.bound_objects import bind
from webhook.policy_sets.catalogue import catalogue

NEAREST = "one mutation for both, or matches that do not overlap"


def leave_out_conflicts(
    converted: Sequence[ConvertedPolicy],
) -> tuple[list[ConvertedPolicy], list[Unconverted]]:
    """Return the policies that can be in force together, and the others with the reason.

    Of mutations that set one field to different values, the first is kept.
    """
    kept, left_out, mutating = list[ConvertedPolicy](), list[Unconverted](), list[BoundPolicy]()
    for each in converted:
        bound = None if each.is_exception else bind(each.object, catalogue())
        if isinstance(bound, BoundPolicy) and bound.policy.mutate is not None:
            try:
                Engine([*mutating, bound])
            except ConflictingPoliciesError as error:
                line = str(error).partition("\n")[0]
                left_out.append(
                    Unconverted(each.origin, f"another mutation conflicts with it: {line}", NEAREST)
                )
                continue
            mutating.append(bound)
        kept.append(each)
    return kept, left_out
