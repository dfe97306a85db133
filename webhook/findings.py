"""The findings of a verdict, one by one, for reports."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from webhook.engine import Outcome, Violation
from webhook.messages import failure

# In order of precedence: a violation gets the first of these that is an action of its policy.
ACTIONS = ("Deny", "Warn", "Audit")


@dataclass(frozen=True, slots=True)
class Finding:
    """One violation of a policy by an object, or a policy that could not judge it.

    `action` is Deny, Warn or Audit. It is Error if a policy with failurePolicy Fail failed, or if
    any policy lacks data of the cluster or of a registry. `violation` is None if the policy failed.
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
    # The outcome that reports each malformed field: the first one that denies.
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
            # a missing look-up is undecided, regardless of the failurePolicy
            action = "Error" if outcome.denies or outcome.lacks else "Warn"
            yield Finding(outcome.policy, "", wording(outcome), action)
        else:
            yield from (_finding(outcome.policy, each, action) for each in outcome.violations)


def _finding(policy: str, violation: Violation, action: str) -> Finding:
    return Finding(policy, violation.where, violation.message, action, violation)
