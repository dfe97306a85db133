"""Nothing that Kubernetes itself creates in a new cluster violates a policy about metadata."""

import json
from pathlib import Path

import pytest

from gatewright.cli import main
from tests.controlplane.plane import ControlPlane

pytestmark = pytest.mark.controlplane

POLICIES = """\
apiVersion: gatewright.io/v1alpha1
kind: ClusterAdmissionPolicy
metadata: {name: labels}
spec: {policy: required-labels, params: {labels: {team: "*"}}}
---
apiVersion: gatewright.io/v1alpha1
kind: ClusterAdmissionPolicy
metadata: {name: annotations}
spec: {policy: required-annotations, params: {annotations: {owner: "*"}}}
---
apiVersion: gatewright.io/v1alpha1
kind: ClusterAdmissionPolicy
metadata: {name: namespaces}
spec: {policy: default-namespace}
"""
OF_TESTS = "StorageClass", "hollow"  # the control plane of the tests has it


def test_the_objects_of_a_new_cluster_are_allowed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """More than a hundred roles and bindings, namespaces, and what each of these has."""
    policies, directory = tmp_path / "policies.yaml", tmp_path / "plane"
    policies.write_text(POLICIES)
    directory.mkdir()
    with ControlPlane.start(directory) as plane, pytest.raises(SystemExit):
        main(["check", f"--policies={policies}", f"--kubeconfig={plane.kubeconfig}", "-ojson"])
    objects = json.loads(capsys.readouterr().out)["results"]
    denied = [(each["kind"], each["name"]) for each in objects if each["verdict"] != "allowed"]
    assert denied == [OF_TESTS]
    assert len(objects) > 100
