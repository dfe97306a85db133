"""Every policy is tried in every way that a policy can be asked."""

from pathlib import Path

from config.documents import read_documents
from config.faults import parse
from webhook.engine import Policy
from webhook.harness.cases import CaseFile, Expectation
from webhook.policies import catalogue

HERE = Path(__file__).parent
MANY_KINDS = 5  # what counts as "in pod templates" where a case cannot be about all kinds


def cases_of(policy: Policy) -> CaseFile:
    """The case file of a policy."""
    (document,) = read_documents(HERE / f"{policy.name.replace('-', '_')}.yaml")
    return parse(CaseFile, document.value)


def test_every_policy_is_tried_in_every_way():
    """Let in and not, or changed; wherever pods stand; with each parameter; on an update."""
    missing = {name: untried(policy) for name, policy in catalogue().items()}
    assert {name: ways for name, ways in missing.items() if ways} == {}


def untried(policy: Policy) -> list[str]:
    """In which ways no case of a policy tries it."""
    file = cases_of(policy)
    expected = [case.expect for case in file.cases]
    found = [case.expect for case in file.cases if isinstance(case.expect, Expectation)]
    missing = []
    if "allowed" not in expected:
        missing.append("a case that is allowed")
    if policy.validate is not None and not any(each.denied for each in found):
        missing.append("a case that is denied")
    if policy.mutate is not None and not any(each.patched for each in found):
        missing.append("a case that is patched")
    spread = [case for case in file.cases if case.each == "pods" or len(case.each or ()) >= MANY_KINDS]
    if policy.kinds == "pods" and not any(case.expect != "allowed" for case in spread):
        missing.append("a finding in every pod template")
    params = [file.params, *(case.params for case in file.cases if case.params is not None)]
    missing += [f"parameter {name}" for name in policy.params.model_fields if not any(name in each for each in params)]
    updates = (case.old_object is not None or case.old_pod is not None for case in file.cases)
    if "UPDATE" in policy.operations and not any(updates) and policy.kinds != "exec":
        missing.append("an update")
    return missing
