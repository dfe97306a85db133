"""A client that reaches the API server by its IP address works while the resolver hangs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OWN = ("unshare", "--net", "--mount", *(() if os.geteuid() == 0 else ("--map-root-user",)))


def asked_on(loop: str) -> subprocess.CompletedProcess[str]:
    """Run the program on an event loop, in its own Linux namespaces."""
    try:
        subprocess.run([*OWN, "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no network and mount namespaces here (unshare)")
    program = [sys.executable, "-m", "tests.kube.hung_resolver", loop]
    return subprocess.run([*OWN, *program], cwd=ROOT, capture_output=True, text=True, timeout=60)


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="namespaces are Linux's")
def test_an_ip_address_is_dialled_while_every_look_up_hangs():
    """The event loop of the processes asks no resolver for an IP address."""
    asked = asked_on("kube.loop:Loop")
    assert (asked.stdout, asked.returncode) == ("answered\n", 0), asked.stderr
