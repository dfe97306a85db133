"""A draft is judged as the webhook would, and becomes a test case."""

import json
from datetime import UTC, datetime
from importlib.resources import files

import pytest

from config.documents import DocumentError
from config.presets import presets
from gatewright.cli import main
from gatewright.tools.playground.case import case_of
from gatewright.tools.playground.draft import JudgedDraft
from tests.gatewright.tools.playground.drafts import REPLICAS, SAID, SHOP, draft

NOW = datetime(2026, 1, 1, tzinfo=UTC)
EXAMPLES = json.loads((files("gatewright.tools.playground") / "examples.json").read_bytes())
NAMESPACE = (
    "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: default, labels: {team: shop}}\n"
)
OF_TEAM = REPLICAS.replace(
    "limits}\nspec: {policy: replica-limits}",
    "limits}\nspec: {policy: replica-limits, match: {any: [{namespaceSelector: {matchLabels: {team: shop}}}]}}",
)
CEL = """\
apiVersion: gatewright.io/v1alpha1
kind: ClusterAdmissionPolicy
metadata: {name: jane}
spec:
  match: {any: [{kinds: [Deployment], operations: [DELETE]}]}
  validations: [{expression: "request.userInfo.username != 'jane'", message: not by jane}]
"""


def shown(**changed):
    """Return the texts that the page shows for a draft."""
    return JudgedDraft.of(draft(**changed), NOW).render(NOW)


def test_a_denial_is_what_kubectl_prints():
    """The title has the operation, the kind, the namespace and the name."""
    assert shown() == {
        "verdict": "denied",
        "title": "CREATE Deployment default/shop",
        "said": SAID,
        "patch": "",
        "children": "",
    }


def test_an_old_object_makes_an_update():
    """A violation that was there before is a warning."""
    found = shown(old_object=SHOP)
    assert (found["verdict"], found["title"]) == ("allowed", "UPDATE Deployment default/shop")
    assert found["said"] == (
        "$ kubectl replace -f object.yaml\nWarning: replica-limits: spec.replicas: 11; production workloads cannot exceed 10 "
        "replicas. Set it to 10 or less. (Already present before this update; not denied.)\ndeployment.apps/shop replaced"
    )


def test_an_old_object_alone_is_a_deletion_by_the_user():
    """Rules in CEL are judged too."""
    assert shown(policies=CEL, object="", old_object=SHOP)["said"] == (
        '$ kubectl delete -f object.yaml\nError from server (Forbidden): error when deleting "object.yaml": admission webhook '
        '"validate.gatewright.io" denied the request: 1 violation\n- jane: not by jane'
    )
    found = shown(policies=CEL, object="", old_object=SHOP, username="joe")
    assert found["said"].splitlines()[1] == 'deployment.apps "shop" deleted from default namespace'


def test_changes_by_policies_are_shown_as_a_diff():
    """It has only the changed lines, with context."""
    example = next(each for each in EXAMPLES if each["name"] == "resource-defaults")
    patch = shown(policies=example["policies"], object=example["object"])["patch"]
    assert patch.startswith("--- sent\n+++ stored\n@@ ")
    assert "\n+      requests:" in patch


def test_children_are_planned_and_judged():
    """The violation of a child is reported in the parent's fields."""
    webapp = "apiVersion: example.com/v1\nkind: WebApp\nmetadata: {name: shop}\nspec: {replicas: 6, image: a/b:1, port: 80}\n"
    policies = REPLICAS.replace(
        "policy: replica-limits", "policy: replica-limits, params: {maximum: 5}"
    )
    found = shown(policies=policies, object=webapp)
    assert "- replica-limits: spec.replicas: 6; " in found["said"]
    assert [line for line in found["children"].splitlines() if line.startswith(("#", "kind"))] == [
        "# WebApp shop: step deployment",
        "kind: Deployment",
        "# WebApp shop: step service",
        "kind: Service",
    ]


def test_later_documents_are_objects_of_the_cluster():
    """A Namespace has labels that a policy selects by; without one it has none."""
    assert shown(policies=OF_TEAM)["verdict"] == "unmatched"
    assert shown(policies=OF_TEAM, object=SHOP + NAMESPACE)["verdict"] == "denied"


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"object": ""}, "object.yaml: no object"),
        (
            {"object": "a: ["},
            "object.yaml:1: not YAML: expected the node content, but found '<stream end>'",
        ),
        (
            {"object": "kind: Pod"},
            "object.yaml:1: apiVersion: missing; every Kubernetes object has one",
        ),
        ({"policies": ""}, "policies.yaml: no policies"),
        (
            {"policies": REPLICAS.replace("policy: replica", "policy: eplica")},
            'policies.yaml:4: ClusterAdmissionPolicy replica-limits: spec.policy: no policy "eplica-limits"; '
            'did you mean "replica-limits"?',
        ),
    ],
)
def test_half_a_text_is_a_problem_with_its_line(changed, problem):
    """The page shows it beside the last verdict."""
    with pytest.raises(ValueError, match=r".") as found:
        shown(**changed)
    assert str(found.value) == problem


def accepted(tmp_path, judged):
    """Write the case and its policy set; return what `gatewright test` returns."""
    (tmp_path / "policies.yaml").write_text(judged.draft.policies)
    (tmp_path / "case.yaml").write_text(case_of(judged, NOW))
    with pytest.raises(SystemExit) as ended:
        main(["test", str(tmp_path / "case.yaml")])
    return ended.value.code


def judge_example(example):
    """Return the verdict on an example of the page."""
    return JudgedDraft.of(draft(**{key: example[key] for key in example if key != "name"}), NOW)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda each: each["name"])
def test_each_example_shows_something(example):
    """It is denied or patched."""
    assert judge_example(example).verdict.verdict in ("denied", "mutated")


@pytest.mark.long
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda each: each["name"])
def test_each_example_is_a_case(example, tmp_path):
    """Its case passes."""
    assert accepted(tmp_path, judge_example(example)) == 0


@pytest.mark.parametrize(
    "changed",
    [
        {"old_object": SHOP},
        {"policies": CEL, "object": "", "old_object": SHOP},
        {"policies": OF_TEAM, "object": SHOP + NAMESPACE},
        {"policies": presets()["best-practices"].read_text()},
    ],
    ids=["update", "deletion", "labels", "look-ups"],
)
def test_any_draft_is_a_case(changed, tmp_path):
    """Updates, deletions, labels of namespaces and look-ups."""
    assert accepted(tmp_path, JudgedDraft.of(draft(**changed), NOW)) == 0


def test_a_verdict_that_no_case_can_express_is_a_problem():
    """A case that no policy judges."""
    with pytest.raises(
        DocumentError,
        match=r"^not usable as a test case: case\.yaml:2: every case expects not-matched",
    ):
        case_of(JudgedDraft.of(draft(policies=OF_TEAM), NOW), NOW)
