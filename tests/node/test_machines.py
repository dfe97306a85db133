"""A machine that cannot run a node is reported in one line, and leftovers of an earlier node are no obstacle."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.controlplane.fixtures import available
from tests.node import buildah
from tests.node.bases import provide
from tests.node.programs import PACKAGES, check_machine
from tests.node.slots import SLOTS, Slot, taken

pytestmark = [pytest.mark.node, pytest.mark.long]

ROOT = Path(__file__).parents[2]
MAIN = (sys.executable, "-m", "tests.node.cluster", "/nowhere/kubeconfig")
# Somebody else, who may read all files, for this machine's Python may be root's.
USER = (
    *("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"),
    *("--inh-caps=+dac_override", "--ambient-caps=+dac_override", "--"),
)
HOLD = """
from tests.controlplane.processes import Reaper
from tests.node.machine import Machine
from tests.node.slots import taken
import time
with taken({places}) as slot:
    Machine(slot, Reaper()).on()
    print(slot.number, flush=True)
    time.sleep(100)
"""
SLOW = 'FROM debian:trixie-slim\nRUN touch /begun && sleep {seconds}\nCMD ["true"]\n'


@pytest.fixture(autouse=True)
def usable(request: pytest.FixtureRequest) -> None:
    """A machine that can run a node."""
    available(request.config, check_machine)


def said(*command: str, **environment: str) -> str:
    """Return the error output of a command that must fail."""
    found = os.environ | environment
    done = subprocess.run(command, cwd=ROOT, env=found, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1, done.stdout
    return done.stderr


def test_a_user_without_root_gets_an_error() -> None:
    """Network namespaces and mounts need root."""
    assert said(*USER, *MAIN) == "no node: only root may make network namespaces and mounts\n"


def test_missing_packages() -> None:
    """They are named, with the script that installs them."""
    assert re.fullmatch(
        r"no node: these packages are missing: buildah, containerd, .*\(tests/node/install.sh\)\n",
        said(*MAIN, PATH="/nowhere"),
    )


def test_the_script_installs_what_is_needed() -> None:
    """Its list is that of the programs."""
    script = (ROOT / "tests/node/install.sh").read_text()
    assert dict(re.findall(r"^need (\S+) (\S+)$", script, re.MULTILINE)) == PACKAGES


def test_a_network_that_has_the_addresses() -> None:
    """The node's addresses must be free."""
    script = f"ip link set lo up; ip route add 10.200.0.0/16 dev lo; exec {' '.join(MAIN)}"
    assert said("unshare", "--net", "sh", "-c", script) == (
        f"no node: {SLOTS} of them run on this machine already, or its network has their "
        "addresses, 10.200.0.1 to 10.200.3.1\n"
    )


def test_remains_of_a_killed_node_are_removed() -> None:
    """Its processes, its cgroups and its cable go before the next node starts."""
    # Slots that no node uses: another one's node could take this one, or leave a lower one free.
    places = range(SLOTS, 2 * SLOTS)
    command = [sys.executable, "-c", HOLD.format(places=places)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as holder:
        slot = Slot(int(holder.stdout.readline()))
        assert all(each.is_dir() for each in slot.cgroups)
        with subprocess.Popen(["sleep", "100"]) as pod:
            (slot.cgroups[0] / "cgroup.procs").write_text(str(pod.pid))
            holder.send_signal(signal.SIGKILL)
            holder.wait()
            with taken([slot.number]):
                assert pod.wait(10) == -signal.SIGKILL
    assert not any(each.exists() for each in slot.cgroups)
    assert not Path(f"/sys/class/net/{slot.interface}").exists()


def test_an_interrupted_build_is_begun_again(tmp_path: Path) -> None:
    """It leaves no mount, and the next build succeeds."""
    dockerfile = tmp_path / "Dockerfile"
    dockerfile.write_text(SLOW.format(seconds=100))
    with buildah.locked():
        provide("debian:trixie-slim", print)
    script = (
        "from pathlib import Path; from tests.node import buildah\n"
        f"with buildah.locked(): buildah.build(Path('{dockerfile}'), Path('{tmp_path}'), 'slow')"
    )
    with subprocess.Popen([sys.executable, "-c", script], cwd=ROOT, start_new_session=True) as slow:
        time.sleep(5)
        os.killpg(slow.pid, signal.SIGKILL)
    dockerfile.write_text(SLOW.format(seconds=0))
    with buildah.locked():
        buildah.build(dockerfile, tmp_path, "gatewright.test/slow:1")
        buildah.run("rmi", "gatewright.test/slow:1")
    assert str(buildah.storage()) not in Path("/proc/mounts").read_text()
