"""Webhook pods that are replaced, evicted and killed, under users who create objects all the time."""

import pytest

from tests.node.conftest import Figures
from tests.node.installation import WEBHOOK, Installation
from tests.node.load import Load
from tests.node.release import NAMESPACE

pytestmark = [pytest.mark.node, pytest.mark.long]

DEPLOYMENT = "deployment/gatewright-webhook"


def test_a_rolling_restart_fails_no_call(installed: Installation, figure: Figures) -> None:
    """Each pod answers until its connections are elsewhere."""
    with Load(installed) as load:
        installed.cluster.kubectl("rollout", "restart", DEPLOYMENT, "-n", NAMESPACE)
        wait_available(installed)
        installed.until("the old pods are gone", lambda: running(installed) == 2)
    figure(str(load))
    assert load.failed == []


def test_an_eviction_fails_no_call(installed: Installation, figure: Figures) -> None:
    """A drain of the nodes evicts one pod after the other; the budget keeps one at work."""
    with Load(installed) as load:
        for pod in installed.pods(WEBHOOK):
            name = pod["metadata"]["name"]
            installed.until(f"{name} is evicted", lambda name=name: evict(installed, name))
            installed.until("it is gone", lambda name=name: not exists(installed, name))
        wait_available(installed)
    figure(str(load))
    assert load.failed == []


def test_a_killed_process_fails_what_it_had(installed: Installation, figure: Figures) -> None:
    """SIGKILL of one of two processes fails a few calls, and no more once it is noticed."""
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


def evict(installation: Installation, pod: str) -> bool:
    """Ask for the eviction of a pod, and return whether its budget allows that now."""
    path = f"/api/v1/namespaces/{NAMESPACE}/pods/{pod}"
    eviction = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": pod, "namespace": NAMESPACE},
    }
    code, answer = installation.cluster.api.request("POST", f"{path}/eviction", eviction)
    assert code in (201, 429), answer
    return code == 201


def exists(installation: Installation, pod: str) -> bool:
    """Return whether a pod is there, ending or not."""
    return installation.cluster.api.found(f"/api/v1/namespaces/{NAMESPACE}/pods/{pod}")


def restarts(installation: Installation, pod: dict) -> int:
    """Return how often a pod's container was restarted."""
    found = installation.cluster.get(f"pod/{pod['metadata']['name']}", NAMESPACE)
    return int(found["status"]["containerStatuses"][0]["restartCount"])


def running(installation: Installation) -> int:
    """Return how many pods there are, those that end included."""
    selected = ("get", "pods", "-n", NAMESPACE, "-l", WEBHOOK, "-o", "name")
    return len(installation.cluster.kubectl(*selected).split())


def wait_available(installation: Installation) -> None:
    """Wait until the webhook's Deployment is rolled out."""
    status = ("rollout", "status", DEPLOYMENT, "-n", NAMESPACE, "--timeout=120s")
    installation.plane.kubectl(*status, timeout=130)
