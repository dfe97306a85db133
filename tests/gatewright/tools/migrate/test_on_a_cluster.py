"""`gatewright migrate --kubeconfig` reads the policies of a real API server, and writes nothing there."""

import pytest

from tests.gatewright.started import call
from tests.gatewright.tools.migrate.converted import cluster_policy

PATTERN = {"pattern": {"metadata": {"labels": {"team": "?*"}}}, "message": "no team"}
SCHEMA = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def definition(group, plural, kind, version="v1"):
    """Return the CustomResourceDefinition of a cluster-scoped kind without a schema."""
    versions = [{"name": version, "served": True, "storage": True,
                 "schema": {"openAPIV3Schema": SCHEMA}}]  # fmt: skip
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {"group": group, "scope": "Cluster", "versions": versions,
                 "names": {"plural": plural, "kind": kind}},
    }  # fmt: skip


@pytest.mark.controlplane
def test_the_policies_of_a_cluster_are_converted(empty_plane, tmp_path, capsys):
    """Custom kinds are known by their definitions, and Pod Security by the labels of namespaces."""
    definitions = [
        definition("kyverno.io", "clusterpolicies", "ClusterPolicy"),
        definition("toys.example.com", "gadgets", "Gadget"),
    ]
    items = {"apiVersion": "v1", "kind": "List", "items": definitions}
    empty_plane.kubectl("apply", "-f", "-", input=items)
    for crd in definitions:
        empty_plane.kubectl("wait", "--for=condition=Established", f"crd/{crd['metadata']['name']}")
    labels = {"pod-security.kubernetes.io/warn": "baseline"}
    objects = [
        cluster_policy(PATTERN, kinds=["Gadget"], name="team"),
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "labels": labels}},
    ]
    empty_plane.kubectl(
        "apply", "-f", "-", input={"apiVersion": "v1", "kind": "List", "items": objects}
    )
    kubeconfig = ("--kubeconfig", str(empty_plane.kubeconfig))
    ended = call(capsys, "migrate", *kubeconfig, "--output", str(tmp_path / "ours"))
    assert (ended.returncode, ended.stderr) == (0, "")
    names = sorted(path.name for path in (tmp_path / "ours").iterdir())
    assert names == ["clusterpolicy-team.yaml", "not-converted.md", "pod-security.yaml"]
    text = (tmp_path / "ours/clusterpolicy-team.yaml").read_text()
    assert text.startswith("# From ClusterPolicy team, rule r (clusterpolicies)\n")
    assert "toys.example.com/v1/Gadget" in text
    # bob has no rights: the command reports it, and fails
    bob = str(empty_plane.kubeconfig_for("bob"))
    ended = call(capsys, "migrate", "--kubeconfig", bob, "--output", str(tmp_path / "none"))
    assert ended.returncode == 3
    assert "clusterpolicies cannot be listed" in ended.stderr
