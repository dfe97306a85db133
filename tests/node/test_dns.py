"""A cluster whose DNS hangs: what Gatewright does for admission needs none."""

import signal
import time
from collections.abc import Iterator

import pytest

from tests.node.conftest import Figures
from tests.node.installation import CONTROLLER, PRODUCTION, Installation
from tests.node.release import NAMESPACE

pytestmark = [pytest.mark.node, pytest.mark.long]

WATCHED = 30.0


@pytest.fixture
def without_dns(bare: Installation) -> Iterator[Installation]:
    """The DNS takes queries and answers none."""
    process = bare.node.processes["coredns"]
    process.signal(signal.SIGSTOP)
    yield bare
    process.signal(signal.SIGCONT)


def test_it_is_installed_while_the_dns_hangs(without_dns: Installation, figure: Figures) -> None:
    """The webhook is registered, and the controller's pods stay ready."""
    installation = without_dns
    installation.namespace("production")
    began = time.monotonic()
    installation.release.install(PRODUCTION)
    installation.until("a bad object is denied", installation.denies)
    figure(f"first denial {time.monotonic() - began:.1f} s after `helm install`")
    end = time.monotonic() + WATCHED
    while time.monotonic() < end:
        assert all(ready(pod) for pod in installation.pods(CONTROLLER))
        time.sleep(1)
    status = ("get", "deployments", "-n", NAMESPACE, "-o", "jsonpath={.items[*].status.conditions}")
    assert "MinimumReplicasUnavailable" not in installation.cluster.kubectl(*status)


def ready(pod: dict) -> bool:
    """Return whether a pod is ready."""
    conditions = {each["type"]: each["status"] for each in pod["status"]["conditions"]}
    return conditions.get("Ready") == "True"
