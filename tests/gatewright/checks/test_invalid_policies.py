"""A policy that cannot be in force is named with its line; the others of its set judge."""

import json

import pytest

from gatewright.cli import main

OBJECT = "apiVersion: gatewright.io/v1alpha1\nkind: {kind}\nmetadata: {{name: {name}}}\n"
GOOD = OBJECT.format(kind="ClusterAdmissionPolicy", name="marks") + (
    "spec:\n"
    "  match: {any: [{kinds: [ConfigMap, Widget]}]}\n"
    "  validations: [{expression: 'false', message: marked}]\n"
)
MUTATION = '{patchType: JSONPatch, jsonPatch: {expression: \'[JSONPatch{op: "add", path: "/metadata/labels", value: {"a": "%s"}}]\'}}'
SETS = OBJECT.format(kind="ClusterAdmissionPolicy", name="sets-%s") + (
    f"spec: {{match: {{any: [{{kinds: [ConfigMap]}}]}}, mutations: [{MUTATION}]}}\n"
)
CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"


def policy(spec, kind="ClusterAdmissionPolicy"):
    """Return a policy object with a fault, and the text of it."""
    return OBJECT.format(kind=kind, name="bad") + f"spec: {spec}\n"


BAD = {
    "unknown policy": (policy("{policy: replica-limit}"), 'did you mean "replica-limits"?'),
    "unknown parameter": (policy("{policy: replica-limits, params: {maximun: 3}}"), "maximum"),
    "unknown field": (policy("{policy: probes, action: Deny}"), "spec.action: unknown field"),
    "rule that does not compile": (
        policy("{match: {any: [{kinds: [Pod]}]}, validations: [{expression: 'a +', message: b}]}"),
        "spec.validations[0].expression",
    ),
    "kind that is not judged": (
        policy("{policy: replica-limits, match: {any: [{kinds: [Secret]}]}}"),
        "Secret",
    ),
    "exception without an end": (policy("{reason: a}", "PolicyException"), "spec.expires"),
    "rule of Kubernetes": (
        "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\n"
        "metadata: {name: bad}\nspec: {validations: [{expression: 'true'}]}\n",
        "spec.matchConstraints",
    ),
    "unknown version": (
        "apiVersion: gatewright.io/v9\nkind: ClusterAdmissionPolicy\nmetadata: {name: bad}\n",
        "a policy set contains",
    ),
    "name of another policy": (
        GOOD.replace("'false'", "'true'"),
        "another policy of this name",
    ),
    "broken document": ("spec: {\n", "not YAML"),
    "no object": ("just a text\n", "not an object"),
}


@pytest.fixture
def run(capsys, tmp_path, monkeypatch):
    """Return a function that runs a command and returns exit code, output and errors."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "object.yaml").write_text(CONFIG_MAP)
    (tmp_path / "cases.yaml").write_text(
        "policies: set.yaml\ncases:\n- name: a\n  object: {kind: ConfigMap}\n"
        "  expect: {denied: [{path: '', message: marked}]}\n"
    )

    def _run(*arguments):
        with pytest.raises(SystemExit) as ended:
            main([*map(str, arguments)])
        return ended.value.code, *capsys.readouterr()

    return _run


COMMANDS = {
    "check": ("check", "--policies", "set.yaml", "object.yaml"),
    "impact": ("impact", "set.yaml", "set.yaml", "object.yaml"),
    "exceptions": ("exceptions", "--policies", "set.yaml", "object.yaml"),
    "test": ("test", "-v", "cases.yaml"),
    "export": ("export", "vap", "set.yaml"),
}
JUDGED = {
    "check": "marks: marked",
    "impact": "1 object: 1 unchanged",
    "exceptions": "0 exceptions",
    "test": "1 case: 1 passed",
    "export": "message: marked",
}


@pytest.mark.parametrize("fault", BAD)
@pytest.mark.parametrize("command", COMMANDS)
def test_the_others_are_in_force(run, tmp_path, command, fault):
    """The exit code is 3; the fault has its file and line."""
    bad, reason = BAD[fault]
    (tmp_path / "set.yaml").write_text(f"{GOOD}---\n{bad}")
    code, output, errors = run(*COMMANDS[command])
    assert code == 3
    assert JUDGED[command] in output
    (line,) = [line for line in errors.splitlines() if reason in line]
    file, number, _ = line.split(":", 2)
    assert file == "set.yaml"
    assert int(number) > GOOD.count("\n")


def test_all_faults_are_named_and_a_file_that_is_missing(run, tmp_path):
    """Each once, in JSON too."""
    texts = [text for fault, (text, _) in BAD.items() if fault != "broken document"]
    (tmp_path / "set.yaml").write_text("---\n".join([*texts, GOOD.replace("marks", "last")]))
    code, output, _ = run(
        "check", "-o", "json", "--policies", "set.yaml", "--policies", "none.yaml", "object.yaml"
    )
    report = json.loads(output)
    assert code == 3
    assert [each["policy"] for each in report["results"][0]["violations"]] == ["last"]
    messages = [each["message"] for each in report["problems"]]
    assert len(messages) == len({*messages}) == len(texts) + 1
    assert messages[0] == "No such file or directory"


def test_a_policy_in_conflict_is_left_out_of_the_cases(run, tmp_path):
    """Cases are judged by the others, as in the webhook."""
    first, second = (SETS % (name, name) for name in ("one", "two"))
    (tmp_path / "set.yaml").write_text(f"{first}---\n{second}---\n{GOOD}")
    code, output, errors = run(*COMMANDS["test"])
    assert (code, "1 case: 1 passed" in output) == (3, True)
    assert "set.yaml:6: it is not in force: " in errors


def test_an_exception_from_an_invalid_policy_is_no_fault_of_its_own(run, tmp_path):
    """The invalid policy is the fault; another name still is."""
    exception = OBJECT.format(kind="PolicyException", name="e") + (
        "spec: {reason: a, expires: '2100-01-01T00:00:00Z', exceptions: [{policy: bad}]}\n"
    )
    bad, _ = BAD["unknown parameter"]
    (tmp_path / "set.yaml").write_text("---\n".join([GOOD, bad, exception]))
    _, _, errors = run(*COMMANDS["check"])
    assert errors.count("set.yaml:") == 2  # the fault, and a note that the exception has no effect
    (tmp_path / "set.yaml").write_text(
        "---\n".join([GOOD, bad, exception.replace("policy: bad", "policy: baad")])
    )
    _, _, errors = run(*COMMANDS["check"])
    assert 'no policy object "baad"' in errors


def test_a_set_without_a_valid_policy_judges_nothing(run, tmp_path):
    """Each fault is named; nothing counts as allowed."""
    bad, reason = BAD["unknown parameter"]
    (tmp_path / "set.yaml").write_text(bad)
    for command in COMMANDS:
        code, output, errors = run(*COMMANDS[command])
        assert (code, reason in errors) == (3, True), command
        assert output in ("", "0 cases\n")
