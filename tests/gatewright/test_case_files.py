"""`gatewright test` from the policy author's view: choosing cases, updating them, coverage and mutants."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gatewright.cli import main
from webhook.policy_sets.catalogue import catalogue

CASES = """\
policy: replica-limits
cases:
- {name: few are fine, object: {kind: Deployment, spec: {replicas: 3}}, expect: allowed}
- {name: many are not, object: {kind: Deployment, spec: {replicas: 30}}, expect: allowed}  # a comment
"""
MESSAGE = "spec.replicas: 30; production workloads cannot exceed 10 replicas. Set it to 10 or less."
DIFFERENCES = [
    "expected allowed, got denied with code 403",
    f"unexpected violation: replica-limits: {MESSAGE}",
]


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    """Return a temporary directory with one case file."""
    monkeypatch.chdir(tmp_path)
    Path("cases.yaml").write_text(CASES)


@pytest.fixture
def run(capsys):
    """Run `gatewright test`; return exit code, stdout and stderr."""

    def _run(*arguments):
        with pytest.raises(SystemExit) as ended:
            main(["test", *arguments])
        out, err = capsys.readouterr()
        return ended.value.code, out, err

    return _run


def test_failing_cases_are_listed_with_their_differences(run):
    """The exit code is 1; each difference has the line of the expectation. With -v, passing cases are listed too."""
    failed = f"failed  case many are not  (cases.yaml:4)\n  cases.yaml:4: replica-limits: {DIFFERENCES[0]}\n"
    failed += f"  cases.yaml:4: replica-limits: {DIFFERENCES[1]}\n"
    passed = "passed  case few are fine  (cases.yaml:3)\n"
    assert run("cases.yaml") == (1, f"{failed}2 cases: 1 passed, 1 failed\n", "")
    assert run("-v", "cases.yaml") == (1, f"{passed}{failed}2 cases: 1 passed, 1 failed\n", "")


def test_json_lists_all_cases(run):
    """Passing cases are included, in order."""
    code, out, _ = run("-o", "json", "cases.yaml")
    results = json.loads(out)["results"]
    assert (code, [(each["name"], each["verdict"], each["line"]) for each in results]) == (
        1,
        [("few are fine", "passed", 3), ("many are not", "failed", 4)],
    )
    assert [each["message"] for each in results[1]["violations"]] == DIFFERENCES


def test_a_bad_file_does_not_hide_the_others(run):
    """The exit code is 3, after the cases of all other files."""
    Path("bad.yaml").write_text(
        "policy: replica-limit\ncases: [{name: a, object: {kind: Pod}, expect: allowed}]\n"
    )
    code, out, err = run("bad.yaml", "cases.yaml")
    assert (code, out.splitlines()[-1], err) == (
        3,
        "2 cases: 1 passed, 1 failed",
        'bad.yaml:1: policy: no policy "replica-limit"; did you mean "replica-limits"?\n',
    )


def test_an_empty_directory_or_a_loop_of_links_hides_no_case(run):
    """Each is an error, after the cases of all other files."""
    Path("empty").mkdir()
    Path("loop.yaml").symlink_to("loop.yaml")
    code, out, err = run("empty", "loop.yaml", "cases.yaml")
    assert (code, out.splitlines()[-1]) == (3, "2 cases: 1 passed, 1 failed")
    assert err.splitlines() == [
        "empty: no YAML files in this directory",
        "loop.yaml: Too many levels of symbolic links",
    ]


def test_an_updated_file_keeps_its_line_ends(run):
    """Each expectation is in its place, and a second update changes nothing."""
    case = "- name: two\n  object: {kind: Deployment, spec: {replicas: 11}}\n  expect: allowed\n"
    Path("cases.yaml").write_text(CASES + case + case.replace("two", "more"), newline="\r\n")
    assert run("cases.yaml", "--update")[2] == "updated cases.yaml; review the changes\n"
    text = Path("cases.yaml").read_bytes()
    assert text.count(b"\n") == text.count(b"\r\n")
    assert run("cases.yaml", "--update") == (0, "4 cases: 4 passed\n", "")
    assert Path("cases.yaml").read_bytes() == text


def test_an_updated_file_in_json_stays_json(run):
    """The expectation is JSON, too."""
    kind = {"kind": "Deployment", "spec": {"replicas": 30}}
    case = {"name": "many", "object": kind, "expect": "allowed"}
    Path("cases.json").write_text(json.dumps({"policy": "replica-limits", "cases": [case]}))
    assert run("cases.json", "--update")[0] == 1
    (updated,) = json.loads(Path("cases.json").read_text())["cases"]
    expected = {"denied": [{"path": "spec.replicas", "message": MESSAGE}]}
    assert updated == case | {"expect": expected}


def test_an_empty_file_is_an_error(run):
    """No case was run, which must not look like success."""
    Path("cases.yaml").write_text("# none\n")
    assert run("cases.yaml") == (3, "0 cases\n", "cases.yaml: the case file is empty\n")


def test_a_directory_may_have_policy_sets_beside_cases(run):
    """They are named as skipped; what is named itself is never skipped, and a directory without cases is an error."""
    policies = (
        "apiVersion: gatewright.io/v1alpha1\nkind: ClusterAdmissionPolicy\nmetadata: {name: a}\n"
    )
    Path("mine").mkdir()
    Path("mine/set.yaml").write_text(f"{policies}spec: {{policy: replica-limits}}\n")
    Path("a\n::b").mkdir()
    Path("a\n::b/set.yaml").write_text(f"{policies}spec: {{policy: replica-limits}}\n")
    assert run("a\n::b", "cases.yaml")[2] == "a\\n::b/set.yaml: skipped: objects, not cases\n"
    skipped = "mine/set.yaml: skipped: objects, not cases\n"
    assert run("mine") == (3, "", f"{skipped}mine: no cases\n")
    assert run("mine/set.yaml")[2].startswith("mine/set.yaml:1: cases: missing; it is required\n")
    Path("mine/few.YAML").write_text(CASES.replace("30", "3"))
    assert run("mine", "mine/few.YAML") == (0, "2 cases: 2 passed\n", skipped)


def test_an_invalid_object_does_not_hide_the_other_cases(run):
    """It is an error at its case."""
    Path("cases.yaml").write_text(
        f"{CASES}- {{name: c, object: {{kind: Pod, metadata: {{name: 5}}}}, expect: allowed}}\n"
    )
    code, out, err = run("cases.yaml")
    assert (code, out.splitlines()[-1]) == (3, "2 cases: 1 passed, 1 failed")
    assert err == "cases.yaml:5: c: request.name: Expected `str | null`, got `int`\n"


def test_cases_are_selected_by_text_and_by_the_last_run(run):
    """-k matches file and name; --last-failed uses a record below the current directory, which git ignores."""
    assert run("-k", "few", "cases.yaml")[:2] == (0, "1 case: 1 passed\n")
    assert run("-k", "none", "cases.yaml") == (3, "", "no case matches -k\n")
    run("cases.yaml")
    assert Path(".gatewright/.gitignore").read_text() == "*\n"
    assert run("--last-failed", "cases.yaml")[1].splitlines()[-1] == "1 case: 1 failed"
    Path("cases.yaml").write_text(CASES.replace("30", "3"))
    assert run("--last-failed", "cases.yaml")[:2] == (0, "1 case: 1 passed\n")
    assert run("--last-failed", "cases.yaml")[:2] == (0, "2 cases: 2 passed\n")


def test_update_rewrites_the_expectations_of_failing_cases(run):
    """That run fails; the next passes."""
    code, _, err = run("--update", "cases.yaml")
    assert (code, err) == (1, "updated cases.yaml; review the changes\n")
    expect = f"expect: {{denied: [{{path: spec.replicas, message: '{MESSAGE}'}}]}}}}  # a comment"
    assert Path("cases.yaml").read_text() == CASES.replace("expect: allowed}  # a comment", expect)
    assert run("cases.yaml")[:2] == (0, "2 cases: 2 passed\n")


def test_coverage_lists_uncovered_situations(run):
    """Each policy has a line; below the required share the exit code is 1."""
    Path("cases.yaml").write_text(CASES.replace("30", "3"))
    code, out, err = run("--coverage", "--coverage-fail-under", "50", "cases.yaml")
    assert (code, out, err) == (
        1,
        "2 cases: 2 passed\n"
        "replica-limits     2 cases      1/7  not tried: violation on CREATE, violation on UPDATE, parameter maximum, "
        "parameter minimum, parameter allow_zero, parameter tier\n"
        "coverage: 14.3 % of 7 situations\n",
        "coverage is 14.3 %, below 50 %\n",
    )


def test_surviving_mutants_are_listed(run):
    """Mutants change parameters, actions and comparisons; those that a case detects are only counted."""
    run("--update", "cases.yaml")
    code, out, _ = run("--mutate", "cases.yaml")
    lines = out.splitlines()
    assert (code, lines[0]) == (0, "2 cases: 2 passed")
    assert "survived  replica-limits: allowExistingViolations reversed" in lines
    assert not [
        line for line in lines if ": params.maximum" in line or "Deny changed to Warn" in line
    ]


def test_mutants_of_a_module(run, request):
    """Each comparison, logical operator and number of a policy in Python, by its line, column and text."""
    request.addfinalizer(catalogue.cache_clear)
    Path("policies").mkdir()
    Path("policies/few_ports.py").write_text(
        '"""Few ports."""\n\nfrom gatewright.policy import Params, Policy, Violation\n\n\n'
        "def validate(request, params):\n"
        "    ports = list(request.each('spec.ports'))\n"
        "    if not ports or len(ports) > 2:\n"
        "        yield Violation('spec.ports', '', 'one or two ports', 'change them')\n\n\n"
        'POLICY = Policy("few-ports", Params, validate=validate, kinds=("Service",))\n'
    )
    denied = "expect: {denied: [{path: spec.ports, policy: few-ports}]}"
    Path("cases.yaml").write_text(
        f"policy: few-ports\ncases:\n- {{name: a, object: {{kind: Service, spec: {{ports: []}}}}, {denied}}}\n"
        "- {name: b, object: {kind: Service}, expect: allowed}\n"
    )
    lines = run("--policies-dir", str(Path("policies").absolute()), "--mutate", "cases.yaml")[
        1
    ].splitlines()
    text = "in `if not ports or len(ports) > 2:`"
    assert lines[1:] == [
        "survived  few-ports: allowExistingViolations reversed",
        f"survived  few-ports: few_ports.py:8:21: > changed to >= {text}",
        f"survived  few-ports: few_ports.py:8:34: 2 changed to 3 {text}",
        "6 mutants: 3 killed, 3 survived",
    ]


def test_mutants_of_a_policy_set(run):
    """They change the match, the parameters and the actions of each policy object, but no module."""
    Path("set.yaml").write_text(
        "apiVersion: gatewright.io/v1alpha1\nkind: ClusterAdmissionPolicy\nmetadata: {name: few}\n"
        "spec: {policy: replica-limits, params: {maximum: 5, tier: staging}, "
        "match: {any: [{namespaces: [shop], kinds: [Deployment]}]}}\n"
    )
    case = "object: {kind: Deployment, spec: {replicas: 7}}, expect: {denied: [{path: spec.replicas, policy: few}]}"
    Path("cases.yaml").write_text(
        f"policies: set.yaml\ncases: [{{name: a, namespace: shop, {case}}}]\n"
    )
    assert run("--mutate", "cases.yaml")[1].splitlines()[1:] == [
        "survived  few: params.maximum + 1",
        "survived  few: params.maximum - 1",
        "survived  few: params.minimum + 1",
        "survived  few: params.allow_zero reversed",
        "survived  few: params.tier changed to stagingx",
        "survived  few: match.any[0].namespaces removed",
        "survived  few: match.any[0].kinds removed",
        "survived  few: match removed",
        "survived  few: allowExistingViolations reversed",
        "10 mutants: 1 killed, 9 survived",
    ]


def test_mutants_of_rules_in_cel(run):
    """Each comparison, logical operator and literal, by its line and column."""
    Path("rule.yaml").write_text(
        "apiVersion: gatewright.io/v1alpha1\nkind: ClusterAdmissionPolicy\nmetadata: {name: few}\nspec:\n"
        "  match: {any: [{kinds: [Deployment]}]}\n  validations:\n    - expression: |-\n"
        "        has(object.spec.replicas) &&\n          object.spec.replicas <= 5\n      path: spec.replicas\n"
    )
    one = "object: {kind: Deployment, spec: {replicas: 7}}, expect: {denied: [{path: spec.replicas, policy: few}]}"
    two = "object: {kind: Deployment, spec: {replicas: 5}}, expect: allowed"
    Path("cases.yaml").write_text(
        f"policies: rule.yaml\ncases: [{{name: a, {one}}}, {{name: b, {two}}}]\n"
    )
    lines = run("--mutate", "cases.yaml")[1].splitlines()
    assert [line for line in lines if "expression" in line] == [
        "survived  few: validations[0].expression:2:27: 5 changed to 6",
    ]
    Path("cases.yaml").write_text(f"policies: rule.yaml\ncases: [{{name: a, {one}}}]\n")
    lines = run("--mutate", "cases.yaml")[1].splitlines()
    assert [line for line in lines if "expression" in line] == [
        "survived  few: validations[0].expression:2:24: <= changed to <",
        "survived  few: validations[0].expression:2:27: 5 changed to 6",
        "survived  few: validations[0].expression:2:27: 5 changed to 4",
    ]


@pytest.mark.long
def test_watch_reruns_after_each_change():
    """Each run is a separate process, until an interrupt."""
    command = [sys.executable, "-m", "gatewright", "test", "--watch", "cases.yaml"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        lines = iter(process.stdout.readline, "")
        try:
            assert (
                next(line for line in lines if "cases:" in line) == "2 cases: 1 passed, 1 failed\n"
            )
            Path("cases.yaml").write_text(CASES.replace("30", "3"))
            assert next(line for line in lines if "cases:" in line) == "2 cases: 2 passed\n"
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 0
        finally:
            process.kill()


GADGETS = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.example.net}
spec:
  group: example.net
  names: {kind: Gadget, plural: gadgets}
  versions:
  - name: v1
    schema: {openAPIV3Schema: {properties: {spec: {properties: {size: {type: integer}}}}}}
"""
OF_GADGETS = """\
apiVersion: gatewright.io/v1alpha1
kind: ClusterAdmissionPolicy
metadata: {name: gadgets}
spec:
  match: {any: [{kinds: [example.net/v1/Gadget]}]}
  validations: [{expression: object.spec.sice < 2, message: small}]
  cases:
  - name: small
    object: {apiVersion: example.net/v1, kind: Gadget, metadata: {name: a}, spec: {sice: 1}}
    expect: allowed
"""


def test_rules_are_checked_by_definitions_among_the_paths(run):
    """Without the definition, a custom kind may have any field."""
    Path("mine").mkdir()
    Path("mine/set.yaml").write_text(OF_GADGETS)
    Path("crds.yaml").write_text(GADGETS)
    assert run("mine") == (0, "1 case: 1 passed\n", "")
    fault = "undefined field 'sice' of 'spec'; did you mean \"size\"?"
    for paths in (("mine", "crds.yaml"), ("crds.yaml", "mine/set.yaml")):
        code, _, errors = run(*paths)
        assert (code, fault in errors) == (3, True), errors
