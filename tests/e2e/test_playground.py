"""The playground prints what kubectl prints."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from gatewright.playground.draft import Draft, JudgedDraft
from tests.e2e import manifests
from tests.e2e.conftest import Laptop

pytestmark = pytest.mark.controlplane("kube-controller-manager", "kube-scheduler", "hollow-kubelet")

GOOD = json.dumps(manifests.deployment())
BAD = json.dumps(manifests.deployment(replicas=11, image="nginx:1.21"))


def test_it_prints_what_kubectl_prints(laptop: Laptop, tmp_path: Path) -> None:
    """A denied creation, a creation, a denied update, an update, and a deletion."""
    now = datetime.now(UTC)
    policies = (laptop.policies / "production.yaml").read_text()
    file = tmp_path / "object.yaml"
    for command, text, old in (
        ("create", BAD, ""),
        ("create", GOOD, ""),
        ("replace", BAD, GOOD),
        ("replace", GOOD, GOOD),
        ("delete", "", GOOD),
    ):
        file.write_text(text or old)
        real = laptop.plane.kubectl(command, "-n", "production", "-f", str(file), check=False)
        draft = Draft(
            policies=policies,
            object=text,
            old_object=old,
            username="jane",
            groups=[],
            namespace="production",
        )
        said = JudgedDraft.of(draft, now).shown(now)["said"]
        printed = (real.stderr + real.stdout).replace(str(file), "object.yaml")
        assert said == f"$ kubectl {command} -f object.yaml\n{printed.rstrip()}"
