"""Run a case through the review code of the server, and compare the answer with the expected one."""

import base64
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import jsonpatch
import orjson

from config.documents import DocumentError
from webhook import review
from webhook.engine import Engine, NotLookedUpError, Outcome, Verdict
from webhook.engine.jsonpatch import same
from webhook.harness.bases import merge
from webhook.harness.case_file import Expectation, Expected
from webhook.harness.cases import Trial
from webhook.harness.reviews import Admission
from webhook.harness.reviews import review as encode

OWN = ("webhook.engine", "webhook.harness")  # whose frames say nothing to the author of a policy
Reported = tuple[str, str]  # policy and message


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to one admission: the last response, the object as patched, and the outcome of each policy."""

    response: dict[str, Any]
    object: dict[str, Any] | None
    outcomes: tuple[Outcome, ...]
    patched_twice: bool  # the mutation changed something again when asked a second time

    @property
    def allowed(self) -> bool:
        """Whether the request is allowed."""
        return bool(self.response["allowed"])


@dataclass(frozen=True, slots=True)
class Tried:
    """A trial, its answer, and how that differs from what was expected, a line each."""

    trial: Trial
    answer: Answer
    differences: tuple[str, ...]


def ask(engine: Engine, admission: Admission, looked_up: dict[str, Any]) -> Answer:
    """Do what the API server does: mutate, mutate again, then validate; every step over the encoded review.

    MalformedRequestError where the object could not be part of a review.
    """
    mutated, first, outcomes = _mutate(engine, admission, looked_up)
    if not first["allowed"]:
        return Answer(first, admission.object, outcomes, patched_twice=False)
    again, second, _ = _mutate(engine, mutated, looked_up)
    verdict, response = _round(engine.validate, again, looked_up)
    warnings = [*first.get("warnings", ()), *response.get("warnings", ())]
    response = response | ({"warnings": warnings} if warnings else {})
    return Answer(response, mutated.object, outcomes + verdict.outcomes, patched_twice="patch" in second)


def ask_stored(engine: Engine, admission: Admission, looked_up: dict[str, Any]) -> Answer:
    """Judge an object as it is stored: nothing is set in it, since nothing was when it was created."""
    verdict, response = _round(engine.validate, admission, looked_up)
    return Answer(response, admission.object, verdict.outcomes, patched_twice=False)


def _mutate(
    engine: Engine, admission: Admission, looked_up: dict[str, Any]
) -> tuple[Admission, dict[str, Any], tuple[Outcome, ...]]:
    verdict, response = _round(engine.mutate, admission, looked_up)
    if "patch" in response:
        operations = orjson.loads(base64.b64decode(response["patch"]))
        admission = replace(admission, object=jsonpatch.apply_patch(admission.object, operations))
    return admission, response, verdict.outcomes


def _round(judge: Any, admission: Admission, looked_up: dict[str, Any]) -> tuple[Verdict, dict[str, Any]]:
    request = review.read(encode(admission)).with_looked_up(looked_up)
    verdict = judge(request)
    return verdict, orjson.loads(review.answer(request, verdict))["response"]


def attempt(trial: Trial) -> Tried:
    """Run one trial. DocumentError where its object could not be part of a review.

    Of the outcomes, those of policies that returned before they looked at the object are left out.
    """
    trial.engine.begin()
    try:
        answer = ask(trial.engine, trial.admission, trial.looked_up)
    except review.MalformedRequestError as error:
        raise DocumentError(f"{trial.where}: {trial.name}: {error}") from None
    answer = replace(answer, outcomes=tuple(filter(trial.engine.looked, answer.outcomes)))
    return Tried(trial, answer, (*_unused(trial), *_differences(trial, answer)))


def differences(trial: Trial) -> list[str]:
    """Return how the answer differs from the expected one, a line each; empty when the case passes."""
    return list(attempt(trial).differences)


def _unused(trial: Trial) -> Iterator[str]:
    """Yield what the case says was looked up though no policy looks it up: it decides nothing."""
    if trial.looks_up:
        about = review.envelope(encode(trial.admission)).attributes
        needed = trial.engine.needs(about) | trial.engine.needs(about, mutating=True)
        for name in sorted(trial.looks_up - needed):
            yield f"looked_up.{name}: no policy looks this up for the request"


def _differences(trial: Trial, answer: Answer) -> Iterator[str]:
    expect = trial.expect
    if answer.patched_twice:
        yield "the mutation is not idempotent: asked again, it changed the object again"
    if expect == "not-matched":
        if answer.outcomes:
            yield f"expected that no policy matches; asked: {', '.join(outcome.policy for outcome in answer.outcomes)}"
        return
    if not answer.outcomes:
        yield "no policy looked at the object: nothing was tried (expect: not-matched, if that is meant)"
        return
    expected = expect if isinstance(expect, Expectation) else Expectation.model_construct()
    yield from _status(trial, expected, answer)
    yield from _violations("warning", warned(answer), expected.warned or [], trial.prefix)
    yield from _violations("audited violation", audited(answer), expected.audited or [], trial.prefix)
    yield from _object(trial, expected, answer)
    for outcome in answer.outcomes:
        if outcome.error is not None:
            yield from _traceback(outcome)


def code_of(answer: Answer) -> int | None:
    """Return the HTTP code of a denial; None where the request is allowed."""
    code: int | None = answer.response.get("status", {}).get("code")
    return code


def denied(answer: Answer) -> list[Reported]:
    """Return policy and message of each violation that denies."""
    causes = answer.response.get("status", {}).get("details", {}).get("causes", [])
    return [(cause["reason"], cause["message"]) for cause in causes]


def warned(answer: Answer) -> list[Reported]:
    """Return policy and message of each warning."""
    return [text.partition(": ")[::2] for text in answer.response.get("warnings", ())]


def audited(answer: Answer) -> list[Reported]:
    """Return policy and message of each violation that only the audit log shows."""
    silent = (outcome for outcome in answer.outcomes if not outcome.actions & {"Deny", "Warn"})
    return [(outcome.policy, each.message) for outcome in silent for each in outcome.violations]


def _status(trial: Trial, expected: Expectation, answer: Answer) -> Iterator[str]:
    wanted = expected.denied or expected.malformed or []
    code = 403 if expected.denied else 400 if expected.malformed else None
    if code_of(answer) != code:
        yield f"expected {_decision(code)}, got {_decision(code_of(answer))}"
    yield from _violations("violation", denied(answer), wanted, trial.prefix)


def _decision(code: int | None) -> str:
    return "allowed" if code is None else f"denied with code {code}"


def _violations(noun: str, found: list[Reported], wanted: list[Expected], prefix: str) -> Iterator[str]:
    """Compare violations by path, and by message and policy where the case names them."""
    left = list(found)
    for expected in wanted:
        match = next((each for each in left if is_expected(expected, each, prefix)), None)
        if match is None:
            message = "" if expected.message is None else f" with message {expected.message!r}"
            yield f"missing {noun} at {joined(prefix, expected.path)}{message}"
        else:
            left.remove(match)
    yield from (f"unexpected {noun}: {policy}: {text}" for policy, text in left)


def is_expected(expected: Expected, found: Reported, prefix: str) -> bool:
    """Return whether a violation that was reported is the expected one."""
    policy, text = found
    path = joined(prefix, expected.path)
    whole = None if expected.message is None else joined(prefix, expected.message)
    return text.startswith(f"{path}: " if path else "") and expected.policy in (None, policy) and whole in (None, text)


def joined(prefix: str, path: str) -> str:
    """Return a path of a case as the violation has it: below `prefix`, where the case is about a pod's spec."""
    return f"{prefix}.{path}" if prefix else path


def _object(trial: Trial, expected: Expectation, answer: Answer) -> Iterator[str]:
    wanted = trial.admission.object if expected.patched is None else merge(trial.admission.object, expected.patched)
    if expected.patched is not None and same(trial.admission.object, wanted):
        yield "patched: equals the object (expect: allowed, if that is meant)"
    if answer.allowed and not same(answer.object, wanted):
        yield from (f"patched otherwise: {operation}" for operation in jsonpatch.make_patch(wanted, answer.object))


def _traceback(outcome: Outcome) -> Iterator[str]:
    """Yield the traceback of a policy that raised, from its own code on."""
    error = outcome.error
    frames = None if error is None else error.__traceback__
    while frames is not None and frames.tb_frame.f_globals.get("__name__", "").startswith(OWN):
        frames = frames.tb_next
    if error is not None and not isinstance(error, NotLookedUpError):
        for text in traceback.format_exception(type(error), error, frames):
            yield from text.rstrip().split("\n")
