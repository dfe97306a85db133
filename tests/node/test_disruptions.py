"""Webhook pods are replaced, evicted and killed while users create objects continuously."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.node.conftest import Figures
from tests.node.installation import ALL, WEBHOOK, Installation
from tests.node.load import Load
from tests.node.parts import NODE
from tests.node.release import NAMESPACE

pytestmark = [pytest.mark.node, pytest.mark.long]

DEPLOYMENT = "deployment/gatewright-webhook"


def test_a_rolling_restart_fails_no_call(installed: Installation, figure: Figures) -> None:
    """Each pod answers until its connections are elsewhere."""
    with Load(installed) as load:
        installed.cluster.kubectl("rollout", "restart", DEPLOYMENT, "-n", NAMESPACE)
        wait_available(installed)
        installed.wait_for_old_pods()
    figure(str(load))
    assert load.failed == []


def test_a_drain_fails_no_call(installed: Installation, figure: Figures) -> None:
    """`kubectl drain` replaces every pod; the budgets keep one of each component running.

    The only node accepts pods again as soon as the drain has begun, in place of a second node.
    """
    kubectl = installed.cluster.kubectl
    names = lambda: {pod["metadata"]["name"] for pod in installed.pods(ALL)}  # noqa: E731
    before = names()
    with Load(installed) as load, ThreadPoolExecutor() as beside:
        selected = (f"--pod-selector={ALL}", "--delete-emptydir-data", "--timeout=120s")
        drain = beside.submit(installed.plane.kubectl, "drain", NODE, *selected, timeout=130)
        spec = lambda: installed.cluster.get(f"node/{NODE}", "default")["spec"]  # noqa: E731
        installed.until("it has begun", lambda: spec().get("unschedulable", False))
        kubectl("uncordon", NODE)
        drain.result()
        wait_available(installed)
    figure(str(load))
    assert not before & names()
    assert load.failed == []


def test_a_killed_process_fails_what_it_had(installed: Installation, figure: Figures) -> None:
    """SIGKILL of one of two processes fails a few calls, and none after its detection."""
    with Load(installed) as load:
        killed = installed.pods(WEBHOOK)[0]
        installed.kill(killed)
        installed.until("it is restarted", lambda: restarts(installed, killed) > 0)
        wait_available(installed)
    figure(str(load))
    assert len(load.failed) < len(load.seconds) / 10, load.failed


def test_a_pod_that_is_deleted_by_force(installed: Installation, figure: Figures) -> None:
    """A pod without time to end fails a few calls."""
    with Load(installed) as load:
        name = installed.pods(WEBHOOK)[0]["metadata"]["name"]
        force = ("--force", "--grace-period=0", "--wait=false")
        installed.cluster.kubectl("delete", "pod", name, "-n", NAMESPACE, *force)
        wait_available(installed)
    figure(str(load))
    assert len(load.failed) < len(load.seconds) / 10, load.failed


def restarts(installation: Installation, pod: dict) -> int:
    """Return how often a pod's container was restarted."""
    found = installation.cluster.get(f"pod/{pod['metadata']['name']}", NAMESPACE)
    return int(found["status"]["containerStatuses"][0]["restartCount"])


def wait_available(installation: Installation) -> None:
    """Wait until the webhook's Deployment is rolled out."""
    status = ("rollout", "status", DEPLOYMENT, "-n", NAMESPACE, "--timeout=120s")
    installation.plane.kubectl(*status, timeout=130)
