"""A cluster whose DNS hangs, is slow or absent: admission does not depend on DNS."""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.controlplane.processes import Process
from tests.node.conftest import Figures
from tests.node.installation import CONTROLLER, PRODUCTION, Installation
from tests.node.release import NAMESPACE

pytestmark = [pytest.mark.node, pytest.mark.long]

WATCHED = 20.0
SLOWNESS = 3.0
CONFIGURATION = "validatingwebhookconfiguration/gatewright"
EMPTIED = """[{"op": "replace", "path": "/webhooks", "value": []}]"""


@contextmanager
def hanging(dns: Process) -> Iterator[None]:
    """A server that never answers queries."""
    dns.signal(signal.SIGSTOP)
    try:
        yield
    finally:
        dns.signal(signal.SIGCONT)


@contextmanager
def slow(dns: Process) -> Iterator[None]:
    """A server that answers all pending queries every few seconds."""
    done = threading.Event()

    def work() -> None:
        while not done.is_set():
            dns.signal(signal.SIGSTOP)
            done.wait(SLOWNESS)
            dns.signal(signal.SIGCONT)
            time.sleep(0.05)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


@contextmanager
def absent(dns: Process) -> Iterator[None]:
    """Nothing listens."""
    dns.kill()
    try:
        yield
    finally:
        dns.start()


def test_it_is_installed_while_the_dns_hangs(bare: Installation, figure: Figures) -> None:
    """The webhook is registered, and the controller's pods stay ready."""
    bare.namespace("production")
    with hanging(bare.node.processes["coredns"]):
        began = time.monotonic()
        bare.release.install(PRODUCTION)
        bare.until("a bad object is denied", bare.denies)
        figure(f"first denial {time.monotonic() - began:.1f} s after `helm install`")
        end = time.monotonic() + WATCHED
        while time.monotonic() < end:
            assert all(ready(pod) for pod in bare.pods(CONTROLLER))
            time.sleep(1)


@pytest.mark.parametrize("dns", [slow, absent])
def test_a_new_leader_registers_the_webhook(installed: Installation, figure: Figures, dns) -> None:
    """Without a working DNS, controllers start, lead, and fill in an empty registration."""
    kubectl = installed.cluster.kubectl
    with dns(installed.node.processes["coredns"]):
        kubectl("delete", "pods", "-l", CONTROLLER, "-n", NAMESPACE)
        began = time.monotonic()
        kubectl("patch", CONFIGURATION, "--type=json", "--patch", EMPTIED)
        assert not installed.denies()
        installed.until("a bad object is denied", installed.denies)
        figure(f"denials again after {time.monotonic() - began:.1f} s")
        two_ready = lambda: [ready(pod) for pod in installed.pods(CONTROLLER)] == [True, True]  # noqa: E731
        installed.until("both are ready", two_ready)


def ready(pod: dict) -> bool:
    """Return whether a pod is ready."""
    conditions = {each["type"]: each["status"] for each in pod["status"].get("conditions", ())}
    return conditions.get("Ready") == "True"
