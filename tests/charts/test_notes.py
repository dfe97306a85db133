"""The notes that `helm install` prints."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from controller.reconcilers import own_kinds
from tests.charts.rendered import CHART
from tests.controlplane.plane import ControlPlane

pytestmark = pytest.mark.controlplane


@pytest.fixture
def notes(helm: Path, control_plane: ControlPlane, namespace: str) -> Callable[..., str]:
    """Return the notes; Helm 3 needs a cluster even for a dry run."""

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
        ((), "No policy set is chosen, so nothing is denied. To preview the violations of one:"),
        (
            ("policies.preset=production",),
            "The policy set production is in force (Deny) once the controller is ready: helm's --wait waits for it",
        ),
        (
            ("policies.preset=baseline", "policies.action=Warn"),
            "The policy set baseline is in force (Warn)",
        ),
        (
            ("policies.preset=production", "webhook.enabled=false"),
            "The webhook is disabled, so nothing is denied.",
        ),
        (("webhook.enabled=false",), "The webhook is disabled."),
    ],
)
def test_the_notes_name_the_policy_set_and_its_action(notes, sets, told):
    """They name the policy set and the action, or state that there is no policy set."""
    assert told in notes(*(f"--set={each}" for each in sets))


def test_the_notes_list_the_rights_of_each_kind(notes):
    """They list the rights of the reconciled kinds, and how to narrow them."""
    *_, about = notes("--set=kinds={WebApp,appconfig}").partition("RIGHTS\n")
    assert about.splitlines() == [
        "The controller may write these resources in every namespace, one line for each kind it reconciles:",
        "  appconfig: configmaps, daemonsets, deployments, statefulsets",
        "  webapp: services, deployments, horizontalpodautoscalers, webapps",
        "To narrow them, name the kinds you use: --set 'kinds={WebApp}'; for policies only: --set 'kinds={none}'.",
    ]
    every = [
        line.split(":")[0].strip()
        for line in notes().splitlines()
        if line.startswith("  ") and ": " in line
    ]
    assert every == sorted(kind.resource.kind.lower() for kind in own_kinds())


def test_without_kinds_there_are_no_rights(notes):
    """Only policies are installed."""
    assert notes("--set=kinds={none}").endswith(
        "The controller reconciles no kind, and has no rights for any.\n"
    )


def test_own_policies_count_as_a_policy_set(notes):
    """The notes do not claim that nothing is denied."""
    own = f"--values={CHART / 'ci/own-policies-values.yaml'}"
    assert "nothing is denied" not in notes("--set=policies.preset=none", own)
