"""The cases that policies carry: what fails is named with the case, what it expected and what came."""

import pytest

from config.documents import Document, parse_documents
from webhook.harness.proof import BUDGET_SECONDS, prove
from webhook.policy_sets.catalogue import catalogue
from webhook.policy_sets.policy_set import FailedCasesError

SET = """\
apiVersion: gatewright.io/v1alpha1
kind: ClusterAdmissionPolicy
metadata: {name: few}
spec: {policy: replica-limits, params: {maximum: 3}}
"""
FIVE = "unexpected violation: few: spec.replicas: 5; at most 3 replicas are allowed"
CASES = """\
policies: few.yaml
cases:
  - name: three
    object: {kind: Deployment, spec: {replicas: 3}}
    expect: allowed
"""


def documents(text: str, source: str = "cases.yaml") -> list[Document]:
    """Return the documents of a text."""
    return list(parse_documents(text.encode(), source))


def failure(cases: str, **more) -> str:
    """Return the message with which cases fail."""
    with pytest.raises(FailedCasesError) as caught:
        prove(documents(cases), catalogue(), carrier=documents(SET, "few.yaml"), **more)
    return str(caught.value)


def test_cases_of_a_set_pass():
    """A path in a case file means the set that carries it; a preset's name means that preset."""
    baseline = (
        "policies: baseline\ncases: [{name: plain, object: {kind: Deployment}, expect: allowed}]"
    )
    prove(documents(f"{CASES}---\n{baseline}"), catalogue(), carrier=documents(SET, "few.yaml"))


def test_a_failing_case_is_named_with_what_it_expected_and_what_came():
    """The place, the case and the differences are in the message."""
    text = failure(CASES.replace("replicas: 3", "replicas: 5"))
    assert text.startswith(
        'cases.yaml:3: case "three": expected allowed, got denied with code 403; '
        "unexpected violation: few: spec.replicas: 5"
    )


def test_of_many_failing_cases_three_are_named():
    """The others are counted."""
    case = "  - {{name: case {0}, object: {{kind: Deployment, spec: {{replicas: 5}}}}, expect: allowed}}\n"
    text = failure("policies: few.yaml\ncases:\n" + "".join(map(case.format, range(7))))
    assert text.count("expected allowed") == 3
    assert text.endswith("and 4 more failing cases")


@pytest.mark.parametrize(
    ("cases", "message"),
    [
        (
            CASES.replace("policies: few.yaml", "policy: replica-limit"),
            'cases.yaml:1: policy: no policy "replica-limit"; did you mean "replica-limits"?',
        ),
        (
            CASES.replace("allowed", "{denied: [{policy: fwe, path: spec.replicas}]}"),
            'cases.yaml:3: case "three": expected denied with code 403, got allowed; missing '
            "violation at spec.replicas",
        ),
        (CASES.replace("object:", "objekt:"), "cases.yaml:4: cases[0].objekt: unknown field"),
        (CASES.replace("replicas:", "replica:"), "cases.yaml:4: cases[0].object.spec.replica: "),
    ],
)
def test_a_case_that_cannot_be_run_fails(cases, message):
    """An unknown policy or field is no reason to put policies in force."""
    assert failure(cases).startswith(message)


def test_cases_that_take_too_long_fail():
    """The case at which the budget ended is named."""
    times = iter([0.0, BUDGET_SECONDS + 1])
    assert failure(CASES, clock=lambda: next(times)) == (
        'cases.yaml:3: case "three": the cases took more than 30 s of CPU up to here; the others '
        "were not run. Carry fewer, or smaller ones"
    )


def test_too_many_cases_fail_before_any_is_run():
    """A hundred thousand cases cost nothing."""
    cases = [{"name": "same", "expect": "allowed"}] * 100_000
    with pytest.raises(FailedCasesError, match="100,000 cases; at most 10,000 are run"):
        prove([Document("cases.yaml", {"policies": "few.yaml", "cases": cases})], catalogue())


def test_a_policy_object_carries_cases_of_its_own():
    """They test the object alone, by its built-in policy or its rules in CEL."""
    carried = (
        "{cases: [{name: five, object: {kind: Deployment, spec: {replicas: 5}}, expect: allowed}], "
    )
    cel = (
        "{match: {any: [{kinds: [Deployment]}]}, "
        'validations: [{expression: "object.spec.replicas < 4", message: too many}], '
    )
    for spec in ("{policy: replica-limits, params: {maximum: 3}, ", cel):
        text = SET[: SET.index("spec:")] + "spec: " + spec + carried.removeprefix("{") + "}\n"
        text = text.replace("], }", "]}")
        with pytest.raises(FailedCasesError, match='case "five": expected allowed, got denied'):
            prove(documents(text), catalogue())
        prove(documents(text.replace("replicas: 5", "replicas: 3")), catalogue())
