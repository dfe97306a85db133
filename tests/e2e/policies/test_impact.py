"""`gatewright impact` names exactly the objects that the webhook denies once the new policies are in force."""

import json
from pathlib import Path

import pytest
import yaml

from tests.e2e import manifests
from tests.e2e.policies.conftest import Installation, few
from tests.gatewright.started import call

pytestmark = pytest.mark.controlplane("kube-controller-manager")

REPLICAS = {"one": 1, "three": 3, "five": 5, "nine": 9}


def test_impact_names_what_will_be_denied(
    installation: Installation,
    namespace: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The existing objects of the cluster are judged, before anything changes there."""
    for name, replicas in REPLICAS.items():
        deployment = manifests.deployment(name, replicas=replicas)
        installation.kubectl("create", "-n", namespace, "-f-", input=deployment)
    old, new = tmp_path / "old.yaml", tmp_path / "new.yaml"
    old.write_text(yaml.safe_dump(few(namespace, 8)))
    new.write_text(yaml.safe_dump(few(namespace, 2)))
    ended = call(
        capsys,
        "impact",
        str(old),
        str(new),
        "--kubeconfig",
        str(installation.plane.kubeconfig),
        "-o",
        "json",
    )
    results = json.loads(ended.stdout)["results"]
    verdicts = {each["name"]: each["verdict"] for each in results if each["namespace"] == namespace}
    assert (ended.returncode, verdicts) == (
        1,
        {"one": "unchanged", "three": "newly denied", "five": "newly denied", "nine": "unchanged"},
    )

    installation.kubectl("apply", "-f-", input=few(namespace, 2))
    installation.until(
        "in force",
        lambda: installation.denied(namespace, manifests.deployment("probe", replicas=3)),
    )
    denied = {
        name: installation.denied(
            namespace, manifests.deployment(f"again-{name}", replicas=replicas)
        )
        for name, replicas in REPLICAS.items()
    }
    newly = {name for name, verdict in verdicts.items() if verdict == "newly denied"}
    assert {name for name, refused in denied.items() if refused} == newly | {
        "nine"
    }  # nine was denied before too
    installation.kubectl("delete", "clusteradmissionpolicy/few")
