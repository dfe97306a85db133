"""A power cut: node, control plane and all pods end at once, and come back unaided under failurePolicy Fail."""

import time

import pytest

from tests.node.conftest import Figures
from tests.node.installation import CONTROLLER, GOOD, WEBHOOK, Installation

pytestmark = [pytest.mark.node, pytest.mark.long]


def test_the_cluster_recovers(installed: Installation, figure: Figures) -> None:
    """All components run again without help, and production's policies are in force."""
    assert failure_policies(installed) == {"Fail"}
    installed.node.cut_power()
    began = time.monotonic()
    installed.node.restart()
    figure(f"the node is ready after {time.monotonic() - began:.1f} s")
    installed.until("a bad object is denied", installed.denies)
    figure(f"bad objects are denied after {time.monotonic() - began:.1f} s")
    for selector in (WEBHOOK, CONTROLLER):
        installed.until("all pods run", lambda of=selector: all_ready(installed, of))
    assert installed.create(GOOD)[0] == 201
    figure(f"all is ready after {time.monotonic() - began:.1f} s")


def failure_policies(installation: Installation) -> set[str]:
    """Return the failurePolicies of the webhooks that get production's requests."""
    webhooks = installation.cluster.get("validatingwebhookconfiguration/gatewright", "default")
    return {each["failurePolicy"] for each in webhooks["webhooks"]}


def all_ready(installation: Installation, selector: str) -> bool:
    """Return whether the two pods of a component are ready."""
    ready = [
        condition["status"]
        for pod in installation.pods(selector)
        for condition in pod["status"].get("conditions", ())
        if condition["type"] == "Ready"
    ]
    return ready == ["True", "True"]
