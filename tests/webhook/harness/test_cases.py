"""An empty or wrong case file is an error; no case passes without having been run."""

import re
import textwrap
from pathlib import Path

import pytest

from config.documents import DocumentError
from webhook.engine import Params, Patch, Policy, Violation
from webhook.harness.cases import load_trials
from webhook.harness.trial import attempt, differences
from webhook.policy_sets.catalogue import catalogue


@pytest.fixture
def file(tmp_path):
    """Write a case file."""
    return tmp_path / "cases.yaml"


def faults(file, text):
    """Return the error of a case file, without the directory."""
    file.write_text(textwrap.dedent(text))
    with pytest.raises(DocumentError) as error:
        list(load_trials(file, catalogue()))
    return str(error.value).replace(f"{file.parent}/", "").split("\n")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param("", "cases.yaml: the case file is empty", id="empty"),
        pytest.param("- a\n", 'cases.yaml:1: ["a"]: should be an object', id="a list"),
        pytest.param(
            "cases: [{name: a, expect: allowed}]",
            "cases.yaml:1: expected either policy or policies",
            id="no subject",
        ),
        pytest.param(
            "policy: replica-limits\npolicies: x.yaml\ncases: [{name: a, expect: allowed}]",
            "cases.yaml:1: expected either policy or policies",
            id="two subjects",
        ),
        pytest.param(
            "policies: x.yaml\nparams: {maximum: 1}\ncases: [{name: a, expect: allowed}]",
            "cases.yaml:1: params belong to the policy set when policies is given",
            id="params beside a policy set",
        ),
        pytest.param(
            "policy: replica-limits\n",
            "cases.yaml:1: cases: missing; it is required",
            id="no cases",
        ),
        pytest.param(
            "policy: replica-limits\ncases: []\n",
            "cases.yaml:2: cases: []: List should have at least 1 item after validation, not 0",
            id="zero cases",
        ),
        pytest.param(
            "policy: replica-limit\ncases:\n- {name: a, object: {kind: Pod}, expect: allowed}\n",
            'cases.yaml:1: policy: no policy "replica-limit"; did you mean "replica-limits"?',
            id="unknown policy",
        ),
        pytest.param(
            "policies: none.yaml\ncases:\n- {name: a, object: {kind: Pod}, expect: allowed}\n",
            "none.yaml: No such file or directory",
            id="unknown file",
        ),
        pytest.param(
            "policy: replica-limits\ncases:\n- name: a\n  objct: {kind: Deployment}\n  expect: allowed\n",
            'cases.yaml:4: cases[0].objct: unknown field; did you mean "object"?',
            id="unknown key",
        ),
        pytest.param(
            "policy: replica-limits\ncase: []\ncases:\n- {name: a, expect: allowed}\n",
            'cases.yaml:2: case: unknown field; did you mean "cases"?',
            id="unknown key of the file",
        ),
        pytest.param(
            "policy: replica-limits\ncases:\n- {name: a, object: {kind: Deploymnt}, expect: allowed}\n",
            'cases.yaml:3: cases[0].object.kind: unknown kind "Deploymnt"; did you mean "Deployment"?',
            id="unknown kind",
        ),
        pytest.param(
            "policy: replica-limits\ncases:\n- {name: a, object: {spec: {replicas: 3}}, expect: allowed}\n",
            "cases.yaml:3: cases[0].object.kind: missing; a case needs a kind, or each",
            id="no kind",
        ),
        pytest.param(
            "policy: replica-limits\ncases:\n- {name: a, each: [Deployment, scales], expect: allowed}\n",
            'cases.yaml:3: cases[0].each: unknown kind "scales"; did you mean "scale"?',
            id="unknown variant",
        ),
        pytest.param(
            "policy: replica-limits\ncases:\n- {name: a, each: [], expect: allowed}\n",
            "cases.yaml:3: cases[0].each: []: Value should have at least 1 item after validation, not 0",
            id="no kinds to run",
        ),
        pytest.param(
            "policy: replica-limits\ncases:\n- {name: a, each: [scale], pod: {}, expect: allowed}\n",
            "cases.yaml:3: cases[0].pod: a Scale has no pod spec",
            id="a pod in a kind without one",
        ),
        pytest.param(
            "policy: replica-limits\ncases:\n- name: a\n  object: {kind: Deployment}\n  params: {maximun: 1}\n"
            "  expect: allowed\n",
            'cases.yaml:5: cases[0].params.maximun: unknown parameter; did you mean "maximum"?',
            id="unknown parameter of a case",
        ),
        pytest.param(
            "policy: replica-limits\nparams:\n  maximum: x\ncases:\n- {name: a, object: {kind: Job}, expect: allowed}",
            'cases.yaml:3: params.maximum: "x": should be a valid integer',
            id="a parameter of the wrong type",
        ),
        pytest.param(
            "policy: replica-limits\ncases:\n- {name: a, operation: PATCH, object: {kind: Pod}, expect: allowed}\n",
            "cases.yaml:3: cases[0].operation: \"PATCH\" is not one of 'CREATE', 'UPDATE' or 'DELETE'",
            id="unknown operation",
        ),
        pytest.param(
            "policy: replica-limits\ncases:\n- {name: a, object: {kind: Pod}}\n",
            "cases.yaml:3: cases[0].expect: missing; it is required",
            id="nothing expected",
        ),
        pytest.param(
            "policy: replica-limits\ncases:\n- {name: '', object: {kind: Pod}, expect: allowed}\n",
            'cases.yaml:3: cases[0].name: "": String should have at least 1 character',
            id="no name",
        ),
    ],
)
def test_an_error_in_a_file_has_its_line(file, text, told):
    """The message has file, line, path and error."""
    assert faults(file, text) == [told]


@pytest.mark.parametrize(
    ("expect", "told"),
    [
        (
            "alowed",
            "cases.yaml:5: cases[0].expect: \"alowed\" is not one of 'allowed' or 'not-matched'",
        ),
        (
            "denied",
            'cases.yaml:5: cases[0].expect: "denied": does not say what is expected; '
            "write {denied: [{policy: replica-limits, path: spec.replicas}]}",
        ),
        (
            "{denid: [{path: a}]}",
            'cases.yaml:5: cases[0].expect.denid: unknown field; did you mean "denied"?',
        ),
        (
            "{denied: [{pth: a}]}",
            'cases.yaml:5: cases[0].expect.denied[0].pth: unknown field; did you mean "path"?',
        ),
        (
            "{denied: []}",
            "cases.yaml:5: cases[0].expect.denied: []: List should have at least 1 item after validation, not 0",
        ),
        (
            "{patched: {}}",
            "cases.yaml:5: cases[0].expect.patched: {}: Dictionary should have at least 1 item after validation, not 0",
        ),
        (
            "{}",
            "cases.yaml:5: cases[0].expect: expected at least one of denied, malformed, warned, audited, patched",
        ),
        (
            "{denied: [{path: a, policy: b}], patched: {a: b}}",
            "cases.yaml:5: cases[0].expect: expected one of denied and patched",
        ),
        (
            "{denied: [{path: a}]}",
            "cases.yaml:5: cases[0].expect.denied[0]: expected message or policy beside the path: any violation there "
            "would pass",
        ),
    ],
)
def test_an_inconsistent_expectation_is_an_error(file, expect, told):
    """An expectation must be a possible response."""
    text = f"policy: replica-limits\ncases:\n- name: a\n  object: {{kind: Deployment}}\n  expect: {expect}\n"
    assert told in faults(file, text)


@pytest.mark.parametrize(
    ("case", "told"),
    [
        (
            "{kind: Deployment}, operation: DELETE, old_object: {}",
            "old_object: a DELETE has only one object: use `object`",
        ),
        (
            "{kind: Deployment}, operation: CREATE, old_pod: {}",
            "old_pod: a CREATE has only one object: use `object`",
        ),
        (
            "{}, each: [exec], old_object: {}",
            "old_object: a CONNECT has only one object: use `object`",
        ),
        (
            "{}, each: [Deployment, scale], operation: DELETE",
            "operation: scale does not support DELETE, only UPDATE",
        ),
    ],
)
def test_a_case_that_would_not_run_as_written_is_an_error(file, case, told):
    """Examples are an unused old object and an impossible operation."""
    text = f"policy: replica-limits\ncases:\n- {{name: a, expect: allowed, object: {case}}}\n"
    assert faults(file, text) == [f"cases.yaml:3: cases[0].{told}"]


def test_errors_of_the_policy_set_are_reported(file):
    """The policies are read as by `gatewright check`."""
    (file.parent / "set.yaml").write_text("kind: X\n")
    assert faults(
        file, "policies: set.yaml\ncases:\n- {name: a, object: {kind: Pod}, expect: allowed}\n"
    ) == [
        "set.yaml:1: document: a policy set contains gatewright.io/v1alpha1 ClusterAdmissionPolicy, AdmissionPolicy "
        "and PolicyException objects, not this"
    ]


def test_invalid_metadata_is_an_error(file):
    """The API server would reject such an object before admission."""
    file.write_text(
        "policy: replica-limits\ncases:\n- {name: a, object: {kind: ReplicaSet, metadata: {name: 5}}, expect: allowed}"
    )
    (trial,) = load_trials(file, catalogue())
    with pytest.raises(DocumentError) as error:
        differences(trial)
    assert str(error.value) == f"{file}:3: a: request.name: Expected `str | null`, got `int`"


def judge(request, _):
    """Report what an annotation requests."""
    asked = request.mapping("metadata.annotations")
    if "fail" in asked:
        raise RuntimeError
    for path in asked.get("paths", "").split():
        yield Violation(path, "x", "this is asked for", "do not ask")


def change(request, _):
    """Set what an annotation requests."""
    asked = request.mapping("metadata.annotations")
    if "set" in asked:
        yield Patch(("metadata", "labels", "set"), asked["set"])
    if "count" in asked:
        yield Patch(
            ("metadata", "labels", "count"),
            f"{request.string('metadata.labels.count') or ''}x",
            overwrite=True,
        )
    if "flag" in asked:
        yield Patch(("spec", "flag"), 1)


TRIED = {
    "judge": Policy("judge", Params, validate=judge, kinds=("Pod", "Deployment")),
    "change": Policy("change", Params, mutate=change, kinds=("Pod",)),
}


def tried(file, policy, case):
    """Run one case and return the differences."""
    # a file needs a case that is judged
    judged = "- {name: b, object: {kind: Deployment}, expect: allowed}\n"
    file.write_text(f"policy: {policy}\ncases:\n- {{name: a, {case}}}\n{judged}")
    return differences(next(load_trials(file, TRIED)))


def asks(annotation, value="x"):
    """Return a case in which an annotation asks the test's policy for something."""
    return f'object: {{kind: Pod, metadata: {{annotations: {{{annotation}: "{value}"}}}}}}'


CHANGED = "a: x; this is asked for. Do not ask."


@pytest.mark.parametrize(
    ("policy", "case", "differs"),
    [
        pytest.param("judge", "object: {kind: Pod}, expect: allowed", [], id="allowed"),
        pytest.param(
            "judge",
            f"{asks('paths', 'a')}, expect: {{denied: [{{path: a, policy: judge}}]}}",
            [],
            id="denied",
        ),
        pytest.param(
            "judge",
            f"{asks('paths', 'b a')}, expect: {{denied: [{{path: a, policy: judge}}, {{path: b, policy: judge}}]}}",
            [],
            id="in any order",
        ),
        pytest.param(
            "judge",
            f"{asks('paths', 'a')}, expect: {{denied: [{{path: a, policy: judge, message: '{CHANGED}'}}]}}",
            [],
            id="denied with everything",
        ),
        pytest.param(
            "judge",
            "object: {kind: WebApp}, expect: allowed",
            [
                "no policy read the object, so nothing was tested (use `expect: not-matched` if that is intended)"
            ],
            id="nothing run",
        ),
        pytest.param("judge", "object: {kind: WebApp}, expect: not-matched", [], id="not matched"),
        pytest.param(
            "judge",
            "object: {kind: Pod}, expect: not-matched",
            ["expected that no policy matches; these match: judge"],
            id="matched unexpectedly",
        ),
        pytest.param(
            "judge",
            f"{asks('paths', 'a')}, expect: allowed",
            [
                "expected allowed, got denied with code 403",
                f"unexpected violation: judge: {CHANGED}",
            ],
            id="denied instead of allowed",
        ),
        pytest.param(
            "judge",
            "object: {kind: Pod}, expect: {denied: [{path: a, policy: judge}]}",
            [
                "expected denied with code 403, got allowed",
                "missing violation at a of policy judge",
            ],
            id="allowed instead of denied",
        ),
        pytest.param(
            "judge",
            f"{asks('paths', 'a')}, expect: {{denied: [{{path: a, policy: judge}}, {{path: b, policy: judge}}]}}",
            ["missing violation at b of policy judge"],
            id="one is missing",
        ),
        pytest.param(
            "judge",
            f"{asks('paths', 'a b')}, expect: {{denied: [{{path: b, policy: judge}}]}}",
            [f"unexpected violation: judge: {CHANGED}"],
            id="one too many",
        ),
        pytest.param(
            "judge",
            f"{asks('paths', 'a')}, expect: {{denied: [{{path: a, policy: judge}}, {{path: a, policy: judge}}]}}",
            ["missing violation at a of policy judge"],
            id="one is not two",
        ),
        pytest.param(
            "judge",
            f"{asks('paths', 'ab')}, expect: {{denied: [{{path: a, policy: judge}}]}}",
            [
                "missing violation at a of policy judge",
                f"unexpected violation: judge: {CHANGED.replace('a', 'ab', 1)}",
            ],
            id="a path is whole",
        ),
        pytest.param(
            "judge",
            f"{asks('paths', 'a')}, expect: {{denied: [{{path: a, message: 'a: y.'}}]}}",
            [
                "missing violation at a with message 'a: y.'",
                f"unexpected violation: judge: {CHANGED}",
            ],
            id="another message",
        ),
        pytest.param(
            "judge",
            f"{asks('paths', 'a')}, expect: {{denied: [{{path: a, policy: other}}]}}",
            ["missing violation at a of policy other", f"unexpected violation: judge: {CHANGED}"],
            id="another policy",
        ),
        pytest.param(
            "judge",
            f"{asks('paths', 'a')}, expect: {{malformed: [{{path: a, policy: judge}}]}}",
            ["expected denied with code 400, got denied with code 403"],
            id="another code",
        ),
        pytest.param(
            "judge",
            f"{asks('paths', 'a')}, expect: {{warned: [{{path: a, policy: judge}}]}}",
            [
                "expected allowed, got denied with code 403",
                f"unexpected violation: judge: {CHANGED}",
                "missing warning at a of policy judge",
            ],
            id="denied instead of warned",
        ),
        pytest.param(
            "change",
            f"{asks('set')}, expect: {{patched: {{metadata: {{labels: {{set: x}}}}}}}}",
            [],
            id="patched",
        ),
        pytest.param(
            "change",
            "object: {kind: Pod}, expect: {patched: {metadata: {}, spec: {}}}",
            ["patched: equals the object (use `expect: allowed` if that is intended)"],
            id="patched with nothing",
        ),
        pytest.param(
            "change",
            f"{asks('set')}, expect: allowed",
            [
                "patched differently: {'op': 'add', 'path': '/metadata/labels', 'value': {'set': 'x'}}"
            ],
            id="patched instead of allowed",
        ),
        pytest.param(
            "change",
            f"{asks('set')}, expect: {{patched: {{metadata: {{labels: {{set: 'y'}}}}}}}}",
            [
                "patched differently: {'op': 'replace', 'path': '/metadata/labels/set', 'value': 'x'}"
            ],
            id="patched differently",
        ),
        pytest.param(
            "change",
            "object: {kind: Pod}, expect: {patched: {metadata: {labels: {set: x}}}}",
            ["patched differently: {'op': 'remove', 'path': '/metadata/labels'}"],
            id="not patched",
        ),
        pytest.param(
            "change",
            f"{asks('flag')}, expect: {{patched: {{spec: {{flag: true}}}}}}",
            ["patched differently: {'op': 'replace', 'path': '/spec/flag', 'value': 1}"],
            id="1 is not true",
        ),
        pytest.param(
            "change",
            f"{asks('count')}, expect: {{patched: {{metadata: {{labels: {{count: x}}}}}}}}",
            ["the mutation is not idempotent: a second call changed the object again"],
            id="not idempotent",
        ),
    ],
)
def test_a_case_passes_when_the_whole_answer_is_the_expected_one(file, policy, case, differs):
    """Each difference is a line."""
    assert tried(file, policy, case) == differs


SET = """\
apiVersion: gatewright.io/v1alpha1
kind: ClusterAdmissionPolicy
metadata: {name: few}
spec:
  policy: replica-limits
  params: {maximum: 2}
  validationActions: [Warn]
  match: {any: [{namespaceSelector: {matchLabels: {tier: small}}}]}
"""
MESSAGE = "spec.replicas: 3; production workloads cannot exceed 2 replicas. Set it to 2 or less."


def test_a_whole_policy_set_is_tested(file):
    """`policies` is a file beside the case file; its parameters, match and actions apply to the case's labels."""
    (file.parent / "set.yaml").write_text(SET)
    file.write_text(
        textwrap.dedent(f"""\
        policies: set.yaml
        cases:
        - name: warned
          namespace_labels: {{tier: small}}
          object: {{kind: Deployment, spec: {{replicas: 3}}}}
          expect: {{warned: [{{path: spec.replicas, policy: few, message: "{MESSAGE}"}}]}}
        - name: elsewhere
          object: {{kind: Deployment, spec: {{replicas: 3}}}}
          expect: not-matched
        - name: warned without a word
          namespace_labels: {{tier: small}}
          object: {{kind: Deployment, spec: {{replicas: 3}}}}
          expect: allowed
        """)
    )
    assert [differences(trial) for trial in load_trials(file, catalogue())] == [
        [],
        [],
        [f"unexpected warning: few: {MESSAGE}"],
    ]


def test_a_case_runs_for_each_kind(file):
    """`each` creates a trial for every kind and subresource, with its own name and path to the pod."""
    file.write_text(
        "policy: image-registries\nparams: {registries: [a.io]}\ncases:\n"
        "- {name: a, each: [Pod, CronJob, ephemeralcontainers], pod: {}, expect: allowed}\n"
        "- {name: b, each: pods, pod: {}, expect: allowed}\n"
    )
    trials = list(load_trials(file, catalogue()))
    assert [
        (trial.name, trial.prefix, trial.admission.subresource, trial.where) for trial in trials[:3]
    ] == [
        ("a [Pod]", "spec", "", f"{file}:4"),
        ("a [CronJob]", "spec.jobTemplate.spec.template.spec", "", f"{file}:4"),
        ("a [ephemeralcontainers]", "spec", "ephemeralcontainers", f"{file}:4"),
    ]
    assert [trial.name for trial in trials[3:]] == [
        f"b [{kind}]"
        for kind in (
            "Pod",
            "PodTemplate",
            "ReplicationController",
            "DaemonSet",
            "Deployment",
            "ReplicaSet",
            "StatefulSet",
            "CronJob",
            "Job",
        )
    ]


@pytest.mark.parametrize(
    ("case", "operation", "object", "old"),
    [
        ("object: {kind: Deployment, spec: {replicas: 3}}", "CREATE", 3, None),
        (
            "object: {kind: Deployment, spec: {replicas: 3}}, old_object: {spec: {replicas: 2}}",
            "UPDATE",
            3,
            2,
        ),
        ("object: {kind: Deployment, spec: {replicas: 3}}, operation: UPDATE", "UPDATE", 3, None),
        ("object: {kind: Deployment, spec: {replicas: 3}}, operation: DELETE", "DELETE", None, 3),
        ("each: [scale], object: {spec: {replicas: 3}}", "UPDATE", 3, 1),
    ],
)
def test_the_operation_follows_from_the_objects(file, case, operation, object, old):
    """An old object means UPDATE, DELETE has only an old object, and a subresource is updated."""
    file.write_text(f"policy: replica-limits\ncases:\n- {{name: a, {case}, expect: allowed}}\n")
    (trial,) = load_trials(file, catalogue())
    asked = trial.admission

    def replicas(object):
        return None if object is None else object["spec"].get("replicas")

    assert (asked.operation, replicas(asked.object), replicas(asked.old_object)) == (
        operation,
        object,
        old,
    )


@pytest.mark.parametrize(
    ("case", "fault"),
    [
        ("object: {kind: Pod, sepc: {}}", 'object.sepc: unknown field; did you mean "spec"?'),
        (
            "each: [CronJob], pod: {hostNetwrok: true}",
            'pod.hostNetwrok: unknown field; did you mean "hostNetwork"?',
        ),
        (
            "object: {kind: Deployment, spec: {hostNetwork: true}}",
            "object.spec.hostNetwork: unknown field; known: minReadySeconds, paused, progressDeadlineSeconds, "
            "replicas, revisionHistoryLimit, selector, strategy, template",
        ),
        (
            "each: [Deployment], old_pod: {}, pod: {containers: [{name: a, image: b, env: [{nam: c}]}]}",
            'pod.containers[0].env[0].nam: unknown field; did you mean "name"?',
        ),
        (
            "object: {kind: WebApp, spec: {replica: 1}}",
            'object.spec.replica: unknown field; did you mean "replicas"?',
        ),
        (
            "each: [scale], object: {}, looked_up: {parnet: {}}",
            'looked_up.parnet: unknown look-up; did you mean "parent"?',
        ),
        (
            "each: [scale], object: {}, looked_up: {parent: {metdata: {}}}",
            'looked_up.parent.metdata: unknown field; did you mean "metadata"?',
        ),
        (
            "object: {kind: Pod}, looked_up: {services: [{spec: {selectr: {}}}]}",
            'looked_up.services[0].spec.selectr: unknown field; did you mean "selector"?',
        ),
        (
            "pod: {containers: [{name: a, image: b, resources: {limits: {memroy: 1Gi, example.com/gpu: 1}}}]}",
            'pod.containers[0].resources.limits.memroy: unknown resource; did you mean "memory"?',
        ),
        (
            "object: {kind: Pod}, looked_up: {limit_ranges: [{spec: {limit: []}}]}",
            'looked_up.limit_ranges[0].spec.limit: unknown field; did you mean "limits"?',
        ),
        (
            "object: {kind: Pod}, looked_up: {services: {}}",
            "looked_up.services: must be a list of objects",
        ),
        (
            "object: {kind: Pod}, looked_up: {disruption_budgets: [{kind: Deployment}]}",
            "looked_up.disruption_budgets[0].kind: must be one of PodDisruptionBudget",
        ),
        (
            "object: {kind: Pod}, looked_up: {services: [{apiVersion: serving.knative.dev/v1, kind: Service}]}",
            "looked_up.services[0].apiVersion: must be v1",
        ),
        (
            "object: {kind: Ingress}, looked_up: {ingresses: [{host: [a.example]}]}",
            'looked_up.ingresses[0].host: unknown field; did you mean "hosts"?',
        ),
        ("each: [exec], object: {ttty: true}", 'object.ttty: unknown field; did you mean "tty"?'),
        (
            "each: [Deployment], pod: {}, also: [ephemeral]",
            "also: ephemeral: only a Pod has ephemeral containers",
        ),
        ("object: {kind: WebApp}, also: [init]", "also: init: a WebApp has no pod spec"),
        ("pod: {containers: null}, also: [init]", "also: init: the object has no containers"),
        (
            "object: {kind: Pod, spec: null}, also: [ephemeral]",
            "also: ephemeral: the object has no containers",
        ),
    ],
)
def test_a_typo_in_a_case_is_an_error(file, case, fault):
    """An unknown field or look-up is an error with a suggestion."""
    text = f"policy: replica-limits\ncases:\n- {{name: a, expect: allowed, {case}}}\n"
    assert faults(file, text) == [f"cases.yaml:3: cases[0].{fault}"]


def test_all_errors_of_a_file_are_reported(file):
    """One bad case does not hide another."""
    case = "- {name: %s, object: {kind: Pod, sepc: {}}, expect: allowed}\n"
    text = f"policy: replica-limits\ncases:\n{case % 'a'}{case % 'b'}"
    assert faults(file, text) == [
        f'cases.yaml:{line}: cases[{line - 3}].object.sepc: unknown field; did you mean "spec"?'
        for line in (3, 4)
    ]


def test_the_names_of_cases_are_unique_in_a_file(file):
    """Reports and selections name a case by its name, also where the file has several documents."""
    text = (
        "policy: replica-limits\ncases:\n- {name: a, object: {kind: Deployment}, expect: allowed}\n"
    )
    assert faults(file, f"{text}---\n{text}") == [
        "cases.yaml:7: cases[0].name: the case at line 3 has the same name"
    ]


def test_an_unused_look_up_is_a_difference(file):
    """A look-up that no policy uses tests nothing."""
    case = "object: {kind: Pod}, looked_up: {services: []}, expect: allowed"
    assert tried(file, "judge", case) == [
        "looked_up.services: no policy uses this look-up for the request"
    ]


def test_audited_violations_must_be_expected(file):
    """A policy with the action Audit changes no answer, but its violations are compared."""
    (file.parent / "set.yaml").write_text(SET.replace("[Warn]", "[Audit]"))
    case = "namespace_labels: {tier: small}, object: {kind: Deployment, spec: {replicas: 3}}"
    file.write_text(
        f"policies: set.yaml\ncases:\n- {{name: a, {case}, expect: allowed}}\n"
        f"- {{name: b, {case}, expect: {{audited: [{{path: spec.replicas, policy: few}}]}}}}\n"
    )
    assert [differences(trial) for trial in load_trials(file, catalogue())] == [
        [f"unexpected audited violation: few: {MESSAGE}"],
        [],
    ]


def test_a_policy_that_raises_shows_its_own_traceback(file):
    """It begins with the policy's own code; frames of the engine are cut."""
    line = judge.__code__.co_firstlineno + 4
    assert tried(file, "judge", f"{asks('fail')}, expect: allowed") == [
        f"the policy raised RuntimeError at {Path(__file__).relative_to(Path.cwd())}:{line}"
    ]
    ((head, *frames, error),) = attempt(next(load_trials(file, TRIED))).crashes
    assert (head, error) == ("Traceback (most recent call last):", "RuntimeError")
    assert [each.strip() for each in frames if "^" not in each] == [
        f'File "{__file__}", line {line}, in judge',
        "raise RuntimeError",
    ]


PRIVILEGED = """\
policy: privileged-containers
cases:
- name: a
  pod: {containers: [{name: app, image: x.example/a, securityContext: {privileged: true}}]}
  also: [init, ephemeral, generateName, update]
  expect:
    denied:
    - path: containers[name=app].securityContext.privileged
      message: "containers[name=app].securityContext.privileged: true; containers must not run privileged. Remove it."
"""


def test_derived_forms_run_too(file):
    """Init and ephemeral containers, a generated name, and an update must get the same answer."""
    file.write_text(PRIVILEGED)
    trials = list(load_trials(file, catalogue()))
    assert [differences(trial) for trial in trials] == [[]] * 5
    assert [
        (trial.name, trial.admission.operation, trial.admission.subresource) for trial in trials
    ] == [
        ("a", "CREATE", ""),
        ("a [init]", "CREATE", ""),
        ("a [ephemeral]", "UPDATE", "ephemeralcontainers"),
        ("a [generateName]", "CREATE", ""),
        ("a [update]", "UPDATE", ""),
    ]
    assert [[*trial.admission.object["spec"]] for trial in trials[1:3]] == [
        ["containers", "initContainers"],
        ["containers", "ephemeralContainers"],
    ]
    assert trials[3].admission.object["metadata"] == {
        "namespace": "default",
        "generateName": "case-",
    }


def early(request, _):
    """Return before the object is read."""
    if (
        request.kind != "Deployment"
        and request.attributes.operation
        and request.lookup("namespace_labels")
    ):
        return
    yield from judge(request, _)


def test_a_policy_that_returns_early_is_not_matched(file):
    """A policy that reads only the kind, the operation or a look-up is not tested by the case."""
    TRIED["early"] = Policy("early", Params, validate=early, kinds=("Pod", "Deployment"))
    assert tried(file, "early", "object: {kind: Pod}, expect: allowed") == [
        "no policy read the object, so nothing was tested (use `expect: not-matched` if that is intended)"
    ]
    assert tried(file, "early", "object: {kind: Pod}, expect: not-matched") == []
    assert tried(file, "early", "object: {kind: Deployment}, expect: allowed") == []


def test_the_namespace_of_the_object_is_that_of_the_request(file):
    """In a cluster, both are always the same."""
    case = "{name: a, expect: allowed, object: {kind: Deployment, metadata: {namespace: shop}}}"
    file.write_text(f"policy: replica-limits\ncases: [{case}]\n")
    (trial,) = load_trials(file, catalogue())
    assert trial.admission.namespace == trial.admission.object["metadata"]["namespace"] == "shop"
    assert trial.looked_up["namespace_labels"] == {"kubernetes.io/metadata.name": "shop"}


def test_exceptions_of_a_set_count_where_gatewright_is_installed(tmp_path):
    """Like in `gatewright check`, exceptions in other namespaces do not count: a tenant could exempt itself."""
    text = (
        "apiVersion: gatewright.io/v1alpha1\nkind: ClusterAdmissionPolicy\nmetadata: {name: limits}\n"
        "spec: {policy: replica-limits, params: {maximum: 3}}\n---\n"
        "apiVersion: gatewright.io/v1alpha1\nkind: PolicyException\n"
        "metadata: {name: sale, namespace: gatewright-system}\n"
        'spec: {reason: sale, expires: "2027-01-01T00:00:00Z", exceptions: [{policy: limits, names: [shop]}]}\n'
    )
    (tmp_path / "set.yaml").write_text(text)
    file = tmp_path / "cases.yaml"
    file.write_text(
        "policies: set.yaml\ncases:\n"
        "- {name: a, object: {kind: Deployment, metadata: {name: shop}, spec: {replicas: 5}}, expect: not-matched}\n"
        "- {name: b, object: {kind: Deployment}, expect: allowed}\n"
    )
    assert [differences(trial) for trial in load_trials(file, catalogue())] == [[], []]
    elsewhere, _ = load_trials(file, catalogue(), "lab")
    assert differences(elsewhere) == ["expected that no policy matches; these match: limits"]


@pytest.mark.parametrize(
    ("case", "fault"),
    [
        (
            "each: [Pod, Deployment], object: {kind: Pod}, expect: allowed",
            "cases[0].object.kind: not beside each, which names the kinds",
        ),
        (
            'object: {kind: Pod}, expect: {denied: [{path: "", policy: judge}]}',
            "cases[0].expect.denied[0]: expected message where the path is empty: any violation of the policy "
            "would pass",
        ),
    ],
)
def test_a_case_that_would_pass_too_easily_is_rejected(tmp_path, case, fault):
    """Such a case would run for one kind several times, or accept every violation."""
    file = tmp_path / "cases.yaml"
    file.write_text(f"policy: judge\ncases:\n- {{name: a, {case}}}\n")
    with pytest.raises(DocumentError, match=f"^{re.escape(f'{file}:3: {fault}')}$"):
        list(load_trials(file, TRIED))


def test_an_update_does_not_rename_the_object(tmp_path):
    """The old object of a case has the name of the new one, also if it is derived."""
    file = tmp_path / "cases.yaml"
    file.write_text(
        "policy: judge\ncases:\n"
        "- {name: a, object: {kind: Pod, metadata: {name: web}}, old_object: {}, expect: allowed}\n"
        "- {name: b, object: {kind: Pod, metadata: {name: web}}, also: [update], expect: allowed}\n"
    )
    old, _, derived = (each.admission.old_object for each in load_trials(file, TRIED))
    assert (old["metadata"]["name"], derived["metadata"]["name"]) == ("web", "web")


def test_a_case_may_be_about_a_kind_that_its_policies_name_in_full(tmp_path):
    """Its object needs an apiVersion; a kind that no policy names is unknown."""
    (tmp_path / "set.yaml").write_text(
        "apiVersion: gatewright.io/v1alpha1\nkind: ClusterAdmissionPolicy\nmetadata: {name: issuers}\nspec:\n"
        "  match: {any: [{kinds: [certificates.cert-manager.io/v1/Certificate]}]}\n"
        "  validations: [{expression: \"object.spec.issuerRef.name == 'company'\", path: spec.issuerRef.name}]\n"
    )
    file = tmp_path / "cases.yaml"
    head = "policies: set.yaml\ncases:\n- name: a\n  object: {apiVersion: cert-manager.io/v1, kind: %s, spec: %s}\n"
    denied = "{denied: [{path: spec.issuerRef.name, policy: issuers}]}"
    for name, expect, wrong in (
        ("company", "allowed", []),
        ("other", denied, []),
        (
            "company",
            denied,
            [
                "expected denied with code 403, got allowed",
                "missing violation at spec.issuerRef.name of policy issuers",
            ],
        ),
    ):
        file.write_text(
            head % ("Certificate", f"{{issuerRef: {{name: {name}}}}}") + f"  expect: {expect}\n"
        )
        (trial,) = load_trials(file, catalogue())
        assert differences(trial) == wrong
    file.write_text(head % ("Issuer", "{}") + "  expect: allowed\n")
    with pytest.raises(DocumentError, match='unknown kind "Issuer"'):
        list(load_trials(file, catalogue()))


POLICY_OF_ANY_KIND = """\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: all}
spec:
  matchConstraints:
    resourceRules:
      - {apiGroups: ["*"], resources: [priorityclasses, validatingwebhookconfigurations]}
      - {apiGroups: [cert-manager.io], resources: [certificates]}
  validations: [{expression: "object.metadata.name != 'case'", message: applies}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: all}
spec: {policyName: all, validationActions: [Deny]}
"""


@pytest.mark.parametrize(
    ("api_version", "kind", "is_known"),
    [
        ("scheduling.k8s.io/v1", "PriorityClass", True),
        ("scheduling.k8s.io/v1", "Priorityclasses", False),
        ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", True),
        ("cert-manager.io/v1", "Certificate", True),
        ("cert-manager.io/v1", "Certificates", False),
        ("cert-manager.io/v1", "Issuer", False),
    ],
)
def test_a_case_may_be_about_any_kind_of_a_resource_that_a_policy_names(
    tmp_path, api_version, kind, is_known
):
    """Built-in kinds are known by name; the name of another kind is derived from its plural."""
    (tmp_path / "set.yaml").write_text(POLICY_OF_ANY_KIND)
    file = tmp_path / "cases.yaml"
    file.write_text(
        "policies: set.yaml\ncases:\n- name: a\n"
        f"  object: {{apiVersion: {api_version}, kind: {kind}}}\n"
        '  expect: {denied: [{path: "", message: applies}]}\n'
    )
    if is_known:
        (trial,) = load_trials(file, catalogue())
        assert differences(trial) == []
    else:
        with pytest.raises(DocumentError, match=f'unknown kind "{kind}"'):
            list(load_trials(file, catalogue()))
