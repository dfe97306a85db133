"""`check` judges and fixes an object as the API server hands it to admission."""

from pathlib import Path

import pytest

from gatewright.cli import main

NATIVE = """\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: rule}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [RESOURCE]}]
  validations: [{expression: "EXPRESSION", message: denied by the rule}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: rule}
spec: {policyName: rule, validationActions: [Deny]}
"""
SIDECAR = """\
apiVersion: gatewright.io/v1alpha1
kind: ClusterAdmissionPolicy
metadata: {name: side}
spec:
  match: {any: [{kinds: [Pod]}]}
  matchConditions: [{name: none, expression: "size(object.spec.containers) < 2"}]
  mutations:
    - patchType: JSONPatch
      jsonPatch:
        expression: '[JSONPatch{op: "add", path: "/spec/containers/-",
          value: Object.spec.containers{name: "log", image: "r.io/log:1"}}]'
"""
POD = """\
apiVersion: v1
kind: Pod
metadata: {name: app}
spec:
  containers:
    - name: app
      image: r.io/app:1
      env: [{name: A, value: ""}]
  restartPolicy: Never
"""
ALIASES = """\
apiVersion: v1
kind: Pod
metadata: {name: app}
spec:
  containers:
    - name: a
      image: r.io/a:1
      securityContext: &same {privileged: true}
    - name: b
      image: r.io/b:1
      securityContext: *same
"""
HOST = "a" * 300_000


@pytest.fixture
def check(tmp_path, monkeypatch, capsys):
    """Check manifests by policies, in a directory of their own; return exit code and output."""
    monkeypatch.chdir(tmp_path)

    def _check(policies, manifest, *options):
        Path("policies.yaml").write_text(policies)
        if manifest:
            Path("manifest.yaml").write_text(manifest)
        with pytest.raises(SystemExit) as ended:
            main(["check", "--policies", "policies.yaml", *options, "manifest.yaml"])
        return ended.value.code, capsys.readouterr().out.splitlines()

    return _check


def native(resource, expression):
    """Return a ValidatingAdmissionPolicy that is bound."""
    return NATIVE.replace("RESOURCE", resource).replace("EXPRESSION", expression)


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ("stringData: {password: x}", 1),
        ("data: {password: eA==}", 1),
        ("stringData: {other: x}\ndata: {key: eA==}", 0),
        ("stringData: {}", 0),
    ],
)
def test_the_string_data_of_a_secret_is_data(check, fields, code):
    """The API server moves it before admission."""
    policies = native("secrets", "!has(object.data) || !('password' in object.data)")
    found = check(policies, f"apiVersion: v1\nkind: Secret\nmetadata: {{name: s}}\n{fields}\n")
    assert found[0] == code


def test_native_policies_have_the_budget_of_the_api_server(check):
    """A large ConfigMap is not denied because its keys are searched."""
    rule = "object.data.all(k, !object.data[k].matches('-----BEGIN [A-Z ]*PRIVATE KEY-----'))"
    found = check(
        native("configmaps", rule),
        f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: m}}\ndata: {{a: {HOST}}}\n",
    )
    assert found == (0, ["1 object: 1 allowed"])


def test_defaults_of_the_api_are_not_written(check):
    """Only what the mutation changed, also where a list grows; what stands there stays."""
    code, out = check(SIDECAR, POD, "--fix-defaults")
    item = '    - {name: log, image: "r.io/log:1"}\n'
    expected = POD.replace("  restartPolicy", f"{item}  restartPolicy")
    assert (Path("manifest.yaml").read_text(), code) == (expected, 0), out


def test_a_fix_that_replaces_an_alias_ends_in_one_run(check):
    """What is found after it is fixed in the same run; a second run changes nothing."""
    options = ("--policies", "restricted", "--fix", "--unsafe-fixes")
    found = check(SIDECAR, ALIASES, *options)
    once = Path("manifest.yaml").read_text()
    assert found == (0, ["1 object: 1 allowed"])
    assert (check(SIDECAR, "", *options), Path("manifest.yaml").read_text()) == (found, once)


APPENDED = """\
apiVersion: gatewright.io/v1alpha1
kind: ClusterAdmissionPolicy
metadata: {name: sidecar}
spec:
  match: {any: [{kinds: [Pod]}]}
  mutations:
  - patchType: JSONPatch
    jsonPatch:
      expression: '[JSONPatch{op: "add", path: "/spec/containers/-", value: Object.spec.containers{name: "log", image: "r.io/log:1"}}]'
"""


def test_an_item_is_added_once_in_a_run(check):
    """Although the mutation would add it again to the file that has it."""
    check(APPENDED, POD, "--fix-defaults")
    item = '    - {name: log, image: "r.io/log:1"}\n'
    expected = POD.replace("  restartPolicy", f"{item}  restartPolicy")
    assert Path("manifest.yaml").read_text() == expected
