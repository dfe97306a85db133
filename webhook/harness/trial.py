"""Try a case through the very review code the server runs, and say how the answer differs from what was expected."""

import base64
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import jsonpatch
import orjson

from config.documents import DocumentError
from webhook import review
from webhook.engine import Engine, Outcome, Verdict
from webhook.engine.jsonpatch import same
from webhook.harness.bases import merge
from webhook.harness.case_file import Expectation, Finding
from webhook.harness.cases import Trial
from webhook.harness.reviews import Admission
from webhook.harness.reviews import review as encode


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of one admission: the last response, the object as patched, and which policies were asked."""

    response: dict[str, Any]
    object: dict[str, Any] | None
    outcomes: tuple[Outcome, ...]
    patched_twice: bool  # the mutation changed something again when asked a second time

    @property
    def allowed(self) -> bool:
        """Whether it was let in."""
        return bool(self.response["allowed"])


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


def differences(trial: Trial) -> list[str]:
    """Return what came otherwise than expected, a line each; empty when the case passes."""
    try:
        answer = ask(trial.engine, trial.admission, trial.looked_up)
    except review.MalformedRequestError as error:
        raise DocumentError(f"{trial.where}: {trial.name}: {error}") from None
    return list(_differences(trial, answer))


def _differences(trial: Trial, answer: Answer) -> Iterator[str]:
    expect = trial.expect
    if answer.patched_twice:
        yield "the mutation is not idempotent: asked again, it changed the object again"
    if expect == "not-matched":
        if answer.outcomes:
            yield f"expected that no policy matches; asked: {', '.join(outcome.policy for outcome in answer.outcomes)}"
        return
    if not answer.outcomes:
        yield "no policy matched: nothing was tried (expect: not-matched, if that is meant)"
        return
    expected = expect if isinstance(expect, Expectation) else Expectation.model_construct()
    yield from _status(trial, expected, answer)
    warned = [text.partition(": ")[::2] for text in answer.response.get("warnings", ())]
    yield from _findings("warning", [(policy, text) for policy, text in warned], expected.warned or [], trial.prefix)
    yield from _object(trial, expected, answer)


def _status(trial: Trial, expected: Expectation, answer: Answer) -> Iterator[str]:
    status = answer.response.get("status", {})
    causes = status.get("details", {}).get("causes", [])
    findings = [(cause["reason"], cause["message"]) for cause in causes]
    wanted = expected.denied or expected.malformed or []
    code = 403 if expected.denied else 400 if expected.malformed else None
    if status.get("code") != code:
        yield f"expected {_said(code)}, came {_said(status.get('code'))}"
    yield from _findings("violation", findings, wanted, trial.prefix)


def _said(code: int | None) -> str:
    return "allowed" if code is None else f"denied with code {code}"


def _findings(noun: str, found: list[tuple[str, str]], wanted: list[Finding], prefix: str) -> Iterator[str]:
    """Compare findings by path, and by message and policy where the case names them."""
    left = list(found)
    for finding in wanted:
        match = next((each for each in left if _is(finding, each, prefix)), None)
        if match is None:
            message = "" if finding.message is None else f" with message {finding.message!r}"
            yield f"missing {noun} at {_join(prefix, finding.path)}{message}"
        else:
            left.remove(match)
    yield from (f"unexpected {noun}: {policy}: {text}" for policy, text in left)


def _is(finding: Finding, found: tuple[str, str], prefix: str) -> bool:
    policy, text = found
    path = _join(prefix, finding.path)
    whole = None if finding.message is None else _join(prefix, finding.message)
    return text.startswith(f"{path}: ") and finding.policy in (None, policy) and whole in (None, text)


def _join(prefix: str, path: str) -> str:
    return f"{prefix}.{path}" if prefix else path


def _object(trial: Trial, expected: Expectation, answer: Answer) -> Iterator[str]:
    wanted = trial.admission.object if expected.patched is None else merge(trial.admission.object, expected.patched)
    if expected.patched is not None and same(trial.admission.object, wanted):
        yield "patched: says nothing that differs from the object (expect: allowed, if that is meant)"
    if answer.allowed and not same(answer.object, wanted):
        yield from (f"patched otherwise: {operation}" for operation in jsonpatch.make_patch(wanted, answer.object))
