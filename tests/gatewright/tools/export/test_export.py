"""`gatewright export vap`: the objects, and the reported losses."""

import pytest
import yaml

from gatewright.cli import main
from tests.gatewright.tools.export.sets import policy

RULE = {
    "expression": "object.spec.replicas < params.most",
    "message": "too many",
    "path": "spec.replicas",
}


@pytest.fixture
def export(tmp_path, capsys):
    """Export policy objects; return the exit code, the objects, and the losses."""

    def run(*objects, options=()):
        path = tmp_path / "set.yaml"
        path.write_text(yaml.safe_dump_all(objects))
        with pytest.raises(SystemExit) as ended:
            main(["export", "vap", str(path), *options])
        captured = capsys.readouterr()
        return ended.value.code, list(yaml.safe_load_all(captured.out)), captured.err.splitlines()

    return run


def test_rules_in_cel_become_a_policy_and_a_binding(export):
    """Parameters are inlined; match becomes constraints and conditions."""
    match = {"any": [{"kinds": ["Deployment"], "namespaces": ["shop-*"]}],
             "exclude": {"groups": ["admins"]}}  # fmt: skip
    code, objects, lost = export(policy(validations=[RULE], params={"most": 3}, match=match))
    assert code == 0
    assert objects == [
        {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": "p"},
            "spec": {
                "failurePolicy": "Fail",
                "matchConstraints": {
                    "resourceRules": [
                        {"apiGroups": ["apps"], "apiVersions": ["v1"],
                         "operations": ["CREATE", "UPDATE"], "resources": ["deployments"]}
                    ]
                },
                "matchConditions": [
                    {"name": "namespaces-that-are-sent",
                     "expression": "!(request.namespace in "
                                   '["gatewright-system","kube-node-lease","kube-system"])'},
                    {"name": "namespaces",
                     "expression": "request.namespace != '' && "
                                   '(request.namespace.matches("^(shop-.*)$"))'},
                    {"name": "groups",
                     "expression": '!request.userInfo.groups.exists(group, group in ["admins"])'},
                ],
                "variables": [{"name": "params", "expression": "{'most': dyn(3)}"}],
                "validations": [
                    {"expression": "object.spec.replicas < variables.params.most",
                     "message": "too many"}
                ],
            },
        },
        {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": "p"},
            "spec": {"policyName": "p", "validationActions": ["Deny"]},
        },
    ]  # fmt: skip
    assert lost == [
        "p: updates that do not worsen a violation are denied too",
        "p: messages do not name the field and its value",
    ]


def test_each_clause_is_a_policy(export):
    """Kubernetes' policies have one set of selectors."""
    clauses = [{"kinds": ["Deployment"]}, {"kinds": ["StatefulSet"], "names": ["db"]}]
    _, objects, _ = export(policy(validations=[RULE], params={"most": 3}, match={"any": clauses}))
    names = [each["metadata"]["name"] for each in objects if "Binding" not in each["kind"]]
    assert names == ["p-1", "p-2"]


def test_files_of_the_api_server_are_a_directory_for_each_plugin(export, tmp_path):
    """KEP-5793: names end in .static.k8s.io; a plugin reads objects of its own kinds only."""
    rules = policy(
        validations=[RULE], params={"most": 3}, match={"any": [{"kinds": ["Deployment"]}]}
    )
    target = tmp_path / "control-plane"
    code, objects, lost = export(rules, options=["--static", str(target)])
    assert (code, objects) == (0, [])
    assert lost == [
        "p: updates that do not worsen a violation are denied too",
        "p: messages do not name the field and its value",
    ]
    directory = target / "ValidatingAdmissionPolicy"
    assert sorted(each for each in target.rglob("*") if each.is_file()) == [
        directory / "policies.yaml",
        target / "admission.yaml",
    ]
    written = list(yaml.safe_load_all((directory / "policies.yaml").read_text()))
    assert [(each["kind"], each["metadata"]["name"]) for each in written] == [
        ("ValidatingAdmissionPolicy", "p.static.k8s.io"),
        ("ValidatingAdmissionPolicyBinding", "p.static.k8s.io"),
    ]
    assert written[1]["spec"]["policyName"] == "p.static.k8s.io"
    assert yaml.safe_load((target / "admission.yaml").read_text()) == {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "AdmissionConfiguration",
        "plugins": [
            {
                "name": "ValidatingAdmissionPolicy",
                "configuration": {
                    "apiVersion": "apiserver.config.k8s.io/v1",
                    "kind": "ValidatingAdmissionPolicyConfiguration",
                    "staticManifestsDir": str(directory),
                },
            }
        ],
    }


def test_what_cel_does_not_express_is_listed(export):
    """Exit code 1: a built-in policy without a counterpart, an exception, functions of Gatewright."""
    exception = {
        "apiVersion": "gatewright.io/v1alpha1",
        "kind": "PolicyException",
        "metadata": {"name": "e"},
        "spec": {"reason": "r", "expires": "2099-01-01T00:00:00Z",
                 "exceptions": [{"policy": "hosts", "names": ["x"]}]},
    }  # fmt: skip
    rounded = {"expression": "math.ceil(1.5) == 2.0"}
    code, objects, lost = export(
        policy("hosts", policy="unique-ingress-hosts"),
        exception,
        policy("math", validations=[rounded]),
    )
    assert (code, objects) == (1, [])
    assert lost == [
        "hosts: not exported: unique-ingress-hosts looks up other objects, "
        "which CEL in the API server cannot",
        "e: exceptions are not exported",
        "math: not exported: it calls functions that the API server does not have",
    ]


def test_words_in_text_are_no_parameters(export):
    """Only the variable is replaced."""
    rule = {"expression": "object.metadata.name != 'params.most' && params.most > 1"}
    _, objects, _ = export(policy(validations=[rule], params={"most": 3},
                                  match={"any": [{"kinds": ["Deployment"]}]}))  # fmt: skip
    expression = objects[0]["spec"]["validations"][0]["expression"]
    assert expression == "object.metadata.name != 'params.most' && variables.params.most > 1"
