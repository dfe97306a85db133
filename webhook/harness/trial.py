"""Run a case through the webhook's review code, and compare the answer with the expected one."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import jsonpatch

from config.documents import DocumentError
from webhook.engine.jsonpatch import same
from webhook.harness.bases import merge
from webhook.harness.case_file import Expected, ExpectedAnswer
from webhook.harness.cases import Trial
from webhook.harness.crashes import describe_crash, traceback_lines
from webhook.harness.reviews import ReviewAnswer, ask
from webhook.harness.unused import find_unused
from webhook.review import MalformedRequestError

PolicyMessage = tuple[str, str]  # policy and message


@dataclass(frozen=True, slots=True)
class Tried:
    """A trial, its answer, and the differences from the expected answer, one per line."""

    trial: Trial
    answer: ReviewAnswer
    differences: tuple[str, ...]

    @property
    def crashes(self) -> Iterator[tuple[str, ...]]:
        """The traceback of each policy that raised, by lines."""
        for error in _raised_errors(self.answer):
            yield tuple(traceback_lines(error))


def attempt(trial: Trial) -> Tried:
    """Run one trial. Raises DocumentError if its object could not be part of a review.

    Outcomes of policies that returned before they read the object are left out.
    """
    trial.engine.begin()
    try:
        answer = ask(trial.engine, trial.admission, trial.looked_up)
    except MalformedRequestError as error:
        raise DocumentError(f"{trial.where}: {trial.name}: {error}") from None
    answer = replace(answer, outcomes=tuple(filter(trial.engine.has_looked, answer.outcomes)))
    return Tried(trial, answer, (*find_unused(trial), *_differences(trial, answer)))


def differences(trial: Trial) -> list[str]:
    """Return the differences between the actual and the expected answer, one per line.

    Empty if the case passes.
    """
    return list(attempt(trial).differences)


def _differences(trial: Trial, answer: ReviewAnswer) -> Iterator[str]:
    if crashes := [*_raised_errors(answer)]:
        yield from (f"the policy raised {describe_crash(error)}" for error in crashes)
        return
    expect = trial.expect
    if answer.patched_twice:
        yield "the mutation is not idempotent: a second call changed the object again"
    if expect == "not-matched":
        if answer.outcomes:
            matching = ", ".join(outcome.policy for outcome in answer.outcomes)
            yield f"expected that no policy matches; these match: {matching}"
        return
    if not answer.outcomes:
        yield (
            "no policy read the object, so nothing was tested (use `expect: not-matched` if that "
            "is intended)"
        )
        return
    expected = expect if isinstance(expect, ExpectedAnswer) else ExpectedAnswer.model_construct()
    yield from _status(trial, expected, answer)
    yield from _violations("warning", list_warnings(answer), expected.warned, trial.prefix)
    yield from _violations(
        "audited violation", list_audited(answer), expected.audited, trial.prefix
    )
    yield from _object(trial, expected, answer)


def _raised_errors(answer: ReviewAnswer) -> Iterator[BaseException]:
    """Yield the error of each policy that raised; not where it lacks data."""
    for outcome in answer.outcomes:
        if outcome.error is not None and not outcome.lacks:
            yield outcome.error


def code_of(answer: ReviewAnswer) -> int | None:
    """Return the HTTP code of a denial; None where the request is allowed."""
    code: int | None = answer.response.get("status", {}).get("code")
    return code


def list_denials(answer: ReviewAnswer) -> list[PolicyMessage]:
    """Return policy and message of each violation that denies."""
    causes = answer.response.get("status", {}).get("details", {}).get("causes", [])
    return [(cause["reason"], cause["message"]) for cause in causes]


def list_warnings(answer: ReviewAnswer) -> list[PolicyMessage]:
    """Return policy and message of each warning."""
    return [text.partition(": ")[::2] for text in answer.response.get("warnings", ())]


def list_audited(answer: ReviewAnswer) -> list[PolicyMessage]:
    """Return policy and message of each violation that appears only in the audit log."""
    silent = (outcome for outcome in answer.outcomes if not outcome.actions & {"Deny", "Warn"})
    return [(outcome.policy, each.message) for outcome in silent for each in outcome.reported]


def _status(trial: Trial, expected: ExpectedAnswer, answer: ReviewAnswer) -> Iterator[str]:
    desired = expected.denied or expected.malformed
    code = 403 if expected.denied else 400 if expected.malformed else None
    if code_of(answer) != code:
        yield f"expected {_decision(code)}, got {_decision(code_of(answer))}"
    yield from _violations("violation", list_denials(answer), desired, trial.prefix)


def _decision(code: int | None) -> str:
    return "allowed" if code is None else f"denied with code {code}"


def _violations(
    noun: str, found: list[PolicyMessage], desired: list[Expected], prefix: str
) -> Iterator[str]:
    """Compare violations by path, and by message and policy where the case names them."""
    left = list(found)
    for expected in desired:
        match = next((each for each in left if is_expected(expected, each, prefix)), None)
        if match is None:
            policy = "" if expected.policy is None else f" of policy {expected.policy}"
            message = "" if expected.message is None else f" with message {expected.message!r}"
            yield f"missing {noun} at {absolute_path(prefix, expected.path)}{policy}{message}"
        else:
            left.remove(match)
    yield from (f"unexpected {noun}: {policy}: {text}" for policy, text in left)


def is_expected(expected: Expected, found: PolicyMessage, prefix: str) -> bool:
    """Return whether a reported violation is the expected one."""
    policy, text = found
    path = absolute_path(prefix, expected.path)
    whole = None if expected.message is None else absolute_path(prefix, expected.message)
    is_there = text.startswith(f"{path}: " if path else "")
    return is_there and expected.policy in (None, policy) and whole in (None, text)


def absolute_path(prefix: str, path: str) -> str:
    """Return the absolute path of a case's path: below `prefix`, if the case sets a pod's spec."""
    return f"{prefix}.{path}" if prefix else path


def _object(trial: Trial, expected: ExpectedAnswer, answer: ReviewAnswer) -> Iterator[str]:
    desired = trial.admission.object
    if expected.patched:
        desired = merge(desired, expected.patched)
    if expected.patched and same(trial.admission.object, desired):
        yield "patched: equals the object (use `expect: allowed` if that is intended)"
    if answer.allowed and not same(answer.object, desired):
        yield from (
            f"patched differently: {operation}"
            for operation in jsonpatch.make_patch(desired, answer.object)
        )
