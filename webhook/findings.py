"""The findings of a verdict, one by one, for reports."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from webhook.engine import Outcome, Violation
from webhook.messages import failure

# A violation has the first of these actions that its policy has.
ACTIONS = ("Deny", "Warn", "Audit")


@dataclass(frozen=True, slots=True)
class Finding:
    """One violation of a policy by an object, or a policy that could not judge it.

    `action` is Deny, Warn, Audit, or Error where a policy that must decide could not, or whatever
    its failurePolicy, lacks what the cluster or a registry would say. `violation` is None where the
    policy failed.
    """

    policy: str
    path: str
    message: str
    action: str = "Deny"
    violation: Violation | None = None


def findings(
    outcomes: Iterable[Outcome], wording: Callable[[Outcome], str] = failure
) -> tuple[Finding, ...]:
    """Return the findings of all outcomes, without duplicates.

    `wording` returns the message of a policy that failed.
    """
    return tuple(dict.fromkeys(_findings(outcomes, wording)))


def _findings(outcomes: Iterable[Outcome], wording: Callable[[Outcome], str]) -> Iterator[Finding]:
    outcomes = tuple(outcomes)
    # Of the policies that read a malformed field, the first one that denies.
    reporters: dict[str, Outcome] = {}
    for outcome in outcomes:
        if outcome.malformed is not None:
            first = reporters.setdefault(outcome.malformed.where, outcome)
            if outcome.denies and not first.denies:
                reporters[outcome.malformed.where] = outcome
    for outcome in outcomes:
        action = next((each for each in ACTIONS if each in outcome.actions), "Audit")
        if outcome.malformed is not None:
            if reporters[outcome.malformed.where] is outcome:
                yield _finding(outcome.policy, outcome.malformed, action)
        elif outcome.error is not None:
            # failurePolicy is about failures, and here nothing was looked up
            action = "Error" if outcome.denies or outcome.lacks else "Warn"
            yield Finding(outcome.policy, "", wording(outcome), action)
        else:
            yield from (_finding(outcome.policy, each, action) for each in outcome.violations)


def _finding(policy: str, violation: Violation, action: str) -> Finding:
    return Finding(policy, violation.where, violation.message, action, violation)
