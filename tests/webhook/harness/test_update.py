"""`gatewright test --update`: expectations become the actual answers, and nothing else of the file changes."""

import pytest

from webhook.engine import Params, Policy, Violation
from webhook.harness.cases import load_trials
from webhook.harness.trial import attempt, differences
from webhook.harness.update import update_expectations


def judge(request, params):
    """Report each path in an annotation."""
    for path in request.mapping("metadata.annotations").get("paths", "").split():
        if path == "raise":
            raise RuntimeError
        yield Violation(path, "x", "a rule " + "of many words " * len(path), "do not ask")


CATALOGUE = {"judge": Policy("judge", Params, validate=judge, kinds=("Pod", "Deployment"))}


def rewritten(tmp_path, cases, bom=""):
    """Return the text after all cases are updated."""
    file = tmp_path / "cases.yaml"
    file.write_text(f"{bom}policy: judge\ncases:\n{cases}")
    cases = {}
    for trial in load_trials(file, CATALOGUE):
        cases.setdefault(trial.path, []).append(attempt(trial))
    text, faults = update_expectations(file.read_text(), cases.values())
    file.write_text(text)
    if faults:
        return [fault.replace(f"{file.parent}/", "") for fault in faults]
    assert [
        differences(trial) for trial in load_trials(file, CATALOGUE) if differences(trial)
    ] == []
    return text.removeprefix(f"{bom}policy: judge\ncases:\n")


def test_a_file_may_begin_with_a_byte_order_mark(tmp_path):
    """It stays, and the expectation is in its place."""
    case = "- name: one\n  object: {kind: Pod}\n  expect: {denied: [{path: a, message: none}]}\n"
    expected = case.replace("{denied: [{path: a, message: none}]}", "allowed")
    assert rewritten(tmp_path, case, bom="\ufeff") == expected


def test_a_flow_case_stays_on_one_line(tmp_path):
    """A flow collection keeps its style."""
    asks = 'object: {kind: Pod, metadata: {annotations: {paths: "a"}}}'
    assert rewritten(tmp_path, f"- {{name: one, {asks}, expect: allowed}}  # kept\n") == (
        f"- {{name: one, {asks}, expect: "
        "{denied: [{path: a, message: 'a: x; a rule of many words . Do not ask.'}]}}  # kept\n"
    )


def test_only_messages_change_when_the_violations_are_the_same(tmp_path):
    """Comments between them are kept, and so is a correct message."""
    case = """\
- name: two
  object: {kind: Pod, metadata: {annotations: {paths: "a b"}}}
  expect:
    # kept
    denied:
      - path: a  # kept
        message: "a: old."
      - path: b
        message: 'b: x; a rule of many words . Do not ask.'
# kept
- {name: other, object: {kind: Pod}, expect: allowed}
"""
    assert rewritten(tmp_path, case) == case.replace(
        '"a: old."', "'a: x; a rule of many words . Do not ask.'"
    )


def test_a_long_expectation_becomes_a_block(tmp_path):
    """It is indented below the case's keys and folded at 120 characters."""
    case = """\
- name: long
  expect: allowed
  object: {kind: Pod, metadata: {annotations: {paths: "abcdefghij"}}}
"""
    rule = ("of many words " * 10)[:-1]
    message = f"abcdefghij: x; a rule {rule} . Do not ask."
    head, _, tail = rewritten(tmp_path, case).partition("      message: ")
    assert head == "- name: long\n  expect:\n    denied:\n    - path: abcdefghij\n"
    *folded, _ = tail.removesuffix("\n").split("\n")
    assert " ".join(line.strip() for line in folded) == f"'{message}'"
    assert max(map(len, folded)) <= 120


def test_an_expectation_that_is_no_longer_met_becomes_allowed(tmp_path):
    """Any previous expectation is replaced."""
    case = """\
- name: none
  object: {kind: Pod}
  expect:
    denied:
      - path: a
        message: "a: old."
"""
    assert rewritten(tmp_path, case) == "- name: none\n  object: {kind: Pod}\n  expect: allowed\n"


@pytest.mark.parametrize(
    ("case", "why"),
    [
        ('object: {kind: Pod, metadata: {annotations: {paths: "raise"}}}', "a policy failed"),
        (
            'each: [Pod, WebApp], object: {metadata: {annotations: {paths: "a"}}}',
            "the answers differ between kinds; write one case for each",
        ),
    ],
)
def test_an_answer_without_an_expectation_is_rejected(tmp_path, case, why):
    """A policy error cannot be expected."""
    case = f"- {{name: a, {case}, expect: allowed}}\n"
    assert rewritten(tmp_path, case) == [f"cases.yaml:3: cases[0]: not updated: {why}"]
