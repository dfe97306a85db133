"""The playground prints what kubectl prints."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from gatewright.tools.playground.draft import Draft, JudgedDraft
from tests.e2e import manifests
from tests.e2e.conftest import Laptop

pytestmark = pytest.mark.controlplane("kube-controller-manager", "kube-scheduler", "hollow-kubelet")

NAME = "playground"
GOOD = json.dumps(manifests.deployment(NAME))
BAD = json.dumps(manifests.deployment(NAME, replicas=11, image="nginx:1.21"))
CONFLICT = "please apply your changes to the latest version"


@pytest.fixture(autouse=True)
def gone(laptop: Laptop) -> Iterator[None]:
    """The namespace is shared: leave no Deployment in it."""
    yield
    laptop.plane.kubectl("delete", "deployment", NAME, "-n", "production", "--ignore-not-found")


def kubectl(laptop: Laptop, command: str, file: Path) -> str:
    """Return what a command prints, repeated while Kubernetes' Deployment controller writes in between."""
    for _ in range(10):
        run = laptop.plane.kubectl(command, "-n", "production", "-f", str(file), check=False)
        if CONFLICT not in run.stderr:
            break
    return (run.stderr + run.stdout).replace(str(file), "object.yaml").rstrip()


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
        printed = kubectl(laptop, command, file)
        draft = Draft(
            policies=policies,
            object=text,
            old_object=old,
            username="jane",
            groups=[],
            namespace="production",
        )
        said = JudgedDraft.of(draft, now).render(now)["said"]
        assert said == f"$ kubectl {command} -f object.yaml\n{printed}"
