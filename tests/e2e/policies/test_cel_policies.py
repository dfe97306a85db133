"""A rule in CEL as an object of the cluster: in force within a second, changed without a restart, the same in files."""

import json
from pathlib import Path

import pytest
import yaml

from kube.resource import JsonObject
from tests.e2e import manifests
from tests.e2e.policies.conftest import API_VERSION, Installation
from tests.gatewright.started import call

pytestmark = pytest.mark.controlplane("kube-controller-manager")


def rule(namespace: str, expression: str) -> JsonObject:
    """Return a policy object with a rule about the Deployments of a namespace."""
    validation = {"expression": expression, "path": "spec.replicas", "message": "must be fewer"}
    match = {"any": [{"namespaces": [namespace], "kinds": ["Deployment"]}]}
    return {
        "apiVersion": API_VERSION,
        "kind": "ClusterAdmissionPolicy",
        "metadata": {"name": "fewer"},
        "spec": {"match": match, "validations": [validation]},
    }


def test_a_rule_is_in_force_and_changed_without_a_restart(
    installation: Installation,
    namespace: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Applied, an object denied by it, changed, in force; a bad version is refused and the good one stays."""
    pids = [webhook.process.pid for webhook in installation.webhooks]
    policy, deployment = (
        rule(namespace, "object.spec.replicas < 3"),
        manifests.deployment(replicas=3),
    )
    installation.apply(policy)
    installation.until("registered", lambda: installation.denied(namespace, deployment))
    said = installation.refusal("create", "-n", namespace, "-f-", input=deployment)
    message = "spec.replicas: 3; must be fewer"
    assert said.rstrip().endswith(f"denied the request: 1 violation\n- fewer: {message}")

    (tmp_path / "policy.yaml").write_text(yaml.safe_dump(policy))
    (tmp_path / "deployment.yaml").write_text(yaml.safe_dump(deployment))
    files = ("--policies", str(tmp_path / "policy.yaml"), str(tmp_path / "deployment.yaml"))
    checked = call(capsys, "check", *files, "-n", namespace, "-o", "json")
    (result,) = json.loads(checked.stdout)["results"]
    assert [each["message"] for each in result["violations"]] == [message]
    case = {
        "name": "denied",
        "namespace": namespace,
        "object": {"kind": "Deployment", "spec": {"replicas": 3}},
    }
    case["expect"] = {"denied": [{"path": "spec.replicas", "message": message}]}
    (tmp_path / "cases.yaml").write_text(
        yaml.safe_dump({"policies": "policy.yaml", "cases": [case]})
    )
    assert call(capsys, "test", str(tmp_path / "cases.yaml")).returncode == 0

    installation.kubectl("apply", "-f-", input=rule(namespace, "object.spec.replicas < 4"))
    installation.until("in force", lambda: not installation.denied(namespace, deployment))

    refused = installation.refusal("apply", "-f-", input=rule(namespace, "object.spec.replicas <"))
    assert (
        'spec.validations[0].expression: "line 1, column 23: syntax error' in refused
        or "spec.validations[0].expression: line 1, column 23: syntax error" in refused
    )
    assert not installation.denied(namespace, deployment)
    assert installation.denied(namespace, manifests.deployment(replicas=4))
    assert [webhook.process.pid for webhook in installation.webhooks] == pids
    installation.kubectl("delete", "clusteradmissionpolicy/fewer")
