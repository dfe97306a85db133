"""Every policy has cases for all of its outcomes, operations, parameters and container lists."""

import re
import textwrap
from pathlib import Path
from typing import Any

import pytest

from config.documents import read_documents
from config.faults import parse
from controller.reconcilers import planned_kinds
from tests.policies.trials import trials_of
from webhook.engine import Policy
from webhook.engine.violation import UNSET
from webhook.harness.case_file import CaseFile, ExpectedAnswer
from webhook.harness.cases import load_trials
from webhook.harness.trial import attempt, differences
from webhook.policy_sets.catalogue import catalogue

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "CONTRIBUTING.md"
BLOCKS = re.DOTALL | re.MULTILINE
MANY_KINDS = 5  # what counts as "in pod templates" where a case cannot be about all kinds


def file_of(policy: Policy) -> Path:
    """Where the cases of a policy are."""
    return HERE / f"{policy.name.replace('-', '_')}.yaml"


def test_every_policy_is_tried_in_every_way():
    """Each has allowed and denied (or patched) cases, for pod templates, for each parameter, and for an update."""
    files = {name: file_of(policy) for name, policy in catalogue().items()}
    without_cases = [file.name for file in files.values() if not file.exists()]
    assert without_cases == [], "write these files of cases in tests/policies/"
    missing = {name: untried(policy, files[name]) for name, policy in catalogue().items()}
    incomplete = {name: ways for name, ways in missing.items() if ways}
    assert incomplete == {}, "add these cases to the policy's file in tests/policies/"


def test_every_category_is_documented():
    """Each is a category that CONTRIBUTING.md lists, or the name of a kind."""
    listed = re.search(r"^   `category` is one of ([^;]*);", PAGE.read_text(), re.MULTILINE)
    assert listed is not None
    categories = {*re.findall(r"`([a-z-]+)`", listed[1]), *(kind.name for kind in planned_kinds())}
    used = {policy.category for policy in catalogue().values()}
    unknown = {
        name: policy.category
        for name, policy in catalogue().items()
        if policy.category not in categories
    }
    assert unknown == {}, f"set category to one of {sorted(categories)}, as CONTRIBUTING.md says"
    unused = {*re.findall(r"`([a-z-]+)`", listed[1])} - used
    assert unused == set(), "no policy has these categories: remove them from CONTRIBUTING.md"


@pytest.mark.long
def test_a_policy_declares_how_safe_its_fixes_are():
    """Exactly the policies with a value that fixes a violation declare it."""
    mending = {
        policy.name
        for policy in catalogue().values()
        for trial in trials_of(file_of(policy))
        for outcome in attempt(trial).answer.outcomes
        for violation in outcome.violations
        if violation.fix_value is not UNSET and not violation.check
    }
    assert mending == {name for name, policy in catalogue().items() if policy.fix}


def test_the_example_of_contributing_is_whole(tmp_path):
    """A copy of the example has passing and complete cases."""
    module, cases = (
        textwrap.dedent(text)
        for text in re.findall(r"^   ```(?:python|yaml)\n(.*?)^   ```", PAGE.read_text(), BLOCKS)
    )
    space: dict[str, Any] = {}
    exec(compile(module, str(PAGE), "exec"), space)
    policy, file = space["POLICY"], tmp_path / "cases.yaml"
    file.write_text(cases)
    trials = list(load_trials(file, {policy.name: policy}))
    assert [(trial.name, differences(trial)) for trial in trials if differences(trial)] == []
    assert (untried(policy, file), len(trials)) == ([], 19)


def untried(policy: Policy, cases: Path) -> list[str]:
    """In which ways no case of a policy tries it."""
    (document,) = read_documents(cases)
    file = parse(CaseFile, document.value)
    expected = [case.expect for case in file.cases]
    found = [case.expect for case in file.cases if isinstance(case.expect, ExpectedAnswer)]
    missing = []
    if "allowed" not in expected:
        missing.append("a case that is allowed")
    if policy.validate is not None and not any(each.denied for each in found):
        missing.append("a case that is denied")
    if policy.mutate is not None and not any(each.patched for each in found):
        missing.append("a case that is patched")
    spread = [
        case for case in file.cases if case.each == "pods" or len(case.each or ()) >= MANY_KINDS
    ]
    if policy.kinds == "pods" and not any(case.expect != "allowed" for case in spread):
        missing.append("a finding in every pod template")
    params = [file.params, *(case.params for case in file.cases if case.params is not None)]
    missing += [
        f"parameter {name}"
        for name in policy.params.model_fields
        if not any(name in each for each in params)
    ]
    updates = (case.old_object is not None or case.old_pod is not None for case in file.cases)
    if "UPDATE" in policy.operations and not any(updates) and policy.kinds != "exec":
        missing.append("an update")
    return missing
