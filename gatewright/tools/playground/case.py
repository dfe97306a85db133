"""Write a draft as a test case, which `gatewright test` accepts."""

from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from config.documents import DocumentError, parse_documents
from gatewright.checks.loaded_policies import PoliciesInForce
from gatewright.outputs.yaml_text import to_yaml
from gatewright.tools.playground.draft import POLICIES, JudgedDraft
from webhook import review
from webhook.engine import NAMESPACE_LABELS, NOW
from webhook.engine.exceptions import HOME
from webhook.engine.look_ups import LOOK_UPS
from webhook.engine.planners import NO_PLANNERS
from webhook.engine.request import NAME_LABEL
from webhook.harness.cases import load_trials
from webhook.harness.reviews import review as encoded
from webhook.harness.trial import attempt
from webhook.harness.update import update_expectations
from webhook.policy_sets.catalogue import catalogue

HEAD = f"# The policy set is in the same directory, as {POLICIES}.\n"


def case_of(judged: JudgedDraft, now: datetime) -> str:
    """Return a case file with the draft and the response of its policies.

    Planned children are not judged in a case. Raises DocumentError if no case can describe the
    draft.
    """
    text = HEAD + to_yaml({"policies": POLICIES, "cases": [_case(judged, now)]})
    with TemporaryDirectory() as directory:
        (Path(directory) / POLICIES).write_text(judged.draft.policies, "utf-8")
        file = Path(directory) / "case.yaml"
        file.write_text(text, "utf-8")
        try:
            text, faults = update_expectations(
                text, [[attempt(each)] for each in load_trials(file, catalogue())]
            )
            if not faults:
                file.write_text(text, "utf-8")
                tried = [attempt(each) for each in load_trials(file, catalogue())]
                faults = [fault for each in tried for fault in each.differences]
        except DocumentError as error:
            faults = [str(error)]
    if faults:
        raise DocumentError(
            "not usable as a test case: " + "\n".join(faults).replace(f"{directory}/", "")
        )
    return text


def _case(judged: JudgedDraft, now: datetime) -> dict[str, Any]:
    admission, data = judged.admission, judged.looked_up
    policies = list(parse_documents(judged.draft.policies.encode(), POLICIES))
    engine = PoliciesInForce.read(policies, HOME, NO_PLANNERS, now).engine
    about = review.attributes(encoded(admission))
    needs = engine.needs(about)
    case: dict[str, Any] = {
        "name": f"{judged.document.value['kind']} {judged.verdict.name}: {judged.verdict.verdict}",
        "object": admission.about,
    }
    if admission.operation == "UPDATE":
        case["old_object"] = admission.old_object
    if admission.operation == "DELETE":
        case["operation"] = "DELETE"
    if judged.verdict.namespace:
        case["namespace"] = judged.verdict.namespace
        labels = {**data[NAMESPACE_LABELS]}
        if NAMESPACE_LABELS in needs and labels.keys() - {NAME_LABEL}:
            case["namespace_labels"] = labels
    case |= {"username": admission.username, "groups": [*admission.groups]}
    if looked_up := {name: data[name] for name in LOOK_UPS if name in needs}:
        case["looked_up"] = looked_up
    if NOW in needs:
        case["now"] = now.isoformat(timespec="seconds")
    return case | {"expect": "allowed"}
