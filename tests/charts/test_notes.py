"""What is told after an installation."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.charts.rendered import CHART
from tests.controlplane.plane import ControlPlane

pytestmark = pytest.mark.controlplane


@pytest.fixture
def notes(helm: Path, control_plane: ControlPlane, namespace: str) -> Callable[..., str]:
    """What `helm install` says; Helm 3 asks for a cluster even where it is to change nothing."""

    def run(*options: str) -> str:
        where = [f"--kubeconfig={control_plane.kubeconfig}", f"--namespace={namespace}"]
        command = [helm, "install", "notes", CHART, "--dry-run=client", *where, *options]
        result = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert result.returncode == 0, result.stderr
        return result.stdout.partition("NOTES:")[2]

    return run


@pytest.mark.parametrize(
    ("sets", "told"),
    [
        ((), "No policy set is chosen, so nothing is denied"),
        (("policies.preset=production",), "Policies of the set production are in force (Deny)"),
        (
            ("policies.preset=production", "webhook.enabled=false"),
            "The webhook is not enabled, so no policy",
        ),
    ],
)
def test_the_notes_say_what_is_enforced(notes, sets, told):
    """Whoever installs is told whether anything will be denied."""
    assert told in notes(*(f"--set={each}" for each in sets))


def test_policies_of_ones_own_are_a_set_too(notes):
    """Who installs objects of their own is not told that nothing is denied."""
    own = f"--values={CHART / 'ci/own-policies-values.yaml'}"
    assert "nothing is denied" not in notes("--set=policies.preset=none", own)
