"""Compares the API server's verdict with the one that a case expects."""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from kube.resource import JsonObject
from tests.policies.on_a_cluster.apiserver import Said
from tests.policies.on_a_cluster.questions import Question
from webhook.engine import PARENT, Engine
from webhook.harness.case_file import Expected, ExpectedAnswer
from webhook.harness.reviews import ask


def judged_otherwise(engine: Engine, question: Question) -> Iterator[str]:
    """Yield an error if another policy or no policy judges the case: an allow would prove nothing."""
    expect = question.trial.expect
    if isinstance(expect, ExpectedAnswer) and expect.malformed:
        return  # every policy reports a malformed object
    looked_up = {PARENT: {}} | question.trial.looked_up
    judges = {outcome.policy for outcome in ask(engine, question.admission, looked_up).outcomes}
    if judges != {question.policy} and (judges or expect != "not-matched"):
        yield f"{question.title}: judged by {judges or 'no policy'}"


def differences(question: Question, said: Said, as_if_written: Said | None) -> Iterator[str]:
    """Yield the differences between the API server's verdict and the expected one."""
    expect = question.trial.expect
    expected = expect if isinstance(expect, ExpectedAnswer) else ExpectedAnswer.model_construct()
    if expected.denied or expected.malformed:
        if expected.malformed and said.is_refused:
            return  # the kind has a schema, which rejects the object first
        code = 403 if expected.denied else 400
        if not said.is_ours or said.code != code:
            yield f"expected a denial with {code}, came {said.message}"
            return
        causes = [
            (cause["field"], cause["message"], cause["reason"])
            for cause in said.body["details"]["causes"]
        ]
        yield from _findings(
            "violation", question, causes, expected.denied or expected.malformed or []
        )
        return
    if not _is_let_in(question, said):
        yield f"expected: allowed; actual: {said.message}"
        return
    ours = [text.partition(": ") for text in said.warnings if re.match(r"p\d+: ", text)]
    warned = [(text.partition(": ")[0], text, policy) for policy, _, text in ours]
    yield from _findings("warning", question, warned, expected.warned or [])
    if as_if_written is not None and as_if_written.code == said.code in (200, 201):
        stored, wanted = _comparable(said.body), _comparable(as_if_written.body)
        if stored != wanted:
            yield f"stored otherwise than expected: {json.dumps(stored)}, not {json.dumps(wanted)}"
    elif as_if_written is not None and said.code in (200, 201):
        yield f"the object that is expected was refused: {as_if_written.message}"


def _is_let_in(question: Question, said: Said) -> bool:
    if said.is_ours:
        return False
    operation = question.trial.admission.operation
    if operation == "CONNECT":
        return said.code == 404  # an allowed request fails because the pod does not exist
    return said.code in (200, 201) or (
        operation == "CREATE" and said.body.get("reason") == "AlreadyExists"
    )


def _findings(
    noun: str, question: Question, found: Sequence[tuple[str, str, str]], wanted: Sequence[Expected]
) -> Iterator[str]:
    prefix = question.trial.prefix
    left = [
        (path, question.told(message))
        for path, message, policy in found
        if policy == question.policy
    ]
    yield from (
        f"{noun} of {policy}: {text}" for _, text, policy in found if policy != question.policy
    )
    for finding in wanted:
        path, whole = (
            _join(prefix, finding.path),
            finding.message and _join(prefix, finding.message),
        )
        match = next((each for each in left if each[0] == path and whole in (None, each[1])), None)
        if match is None:
            yield f"missing {noun} at {path}{f' with message {whole!r}' if whole else ''}"
        else:
            left.remove(match)
    yield from (f"unexpected {noun}: {text}" for _, text in left)


def _join(prefix: str, path: str) -> str:
    return f"{prefix}.{path}" if prefix else path


def _comparable(stored: JsonObject) -> Any:
    """Return a stored object without fields that differ in each run."""
    metadata = stored["metadata"]
    ours = ("uid", "creationTimestamp", "managedFields", "resourceVersion", "generation")
    kept = {key: value for key, value in metadata.items() if key not in ours}
    if "generateName" in metadata:
        del kept["name"]
    text = json.dumps(stored | {"metadata": kept}).replace(metadata["uid"], "UID")
    return json.loads(re.sub(r"kube-api-access-\w{5}", "kube-api-access", text))
