"""The namespaces that a node runs in: its own network, mounts and processes. Ending the first process ends them all."""

import subprocess
import time
from pathlib import Path

from tests.controlplane.host import Host
from tests.controlplane.processes import Process, Reaper
from tests.node.slots import NodeError, Slot

STARTS_WITHIN = 60.0
PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
# Orphaned processes become children of the first process, which reaps them by ignoring SIGCHLD.
FIRST = "trap '' CHLD; exec sleep infinity"
# The node's writes to /run and /var go to its own directory.
SETUP = """
set -e
mount -t tmpfs tmpfs /run
mkdir -p {directory}/var {directory}/var.work
mount -t overlay overlay -o lowerdir=/var,upperdir={directory}/var,workdir={directory}/var.work /var
ip link set lo up
ip address add {address}/30 dev eth0
ip link set eth0 up
ip route add default via {outside}
sysctl -qw net.ipv4.ip_forward=1
"""


class Machine:
    """One machine of the cluster, which can be switched on and off."""

    def __init__(self, slot: Slot, reaper: Reaper) -> None:
        """Prepare everything, start nothing."""
        self.slot = slot
        self._reaper = reaper
        self._first = slot.directory / "first.pid"
        kinds = ("--net", "--mount", "--pid", "--ipc", "--fork", "--kill-child", "--mount-proc")
        command = ["unshare", *kinds, "sh", "-c", FIRST]
        self._process = Process("machine", command, slot.directory / "machine.log", reaper)

    @property
    def host(self) -> Host:
        """Where a control plane runs in the machine's network."""
        return Host(self.slot.address, self._enter("--net"))

    def process(self, name: str, *command: str | Path) -> Process:
        """Prepare a program that runs in the machine."""
        inside = [*self._inside(), *map(str, command)]
        log = self.slot.directory / "logs" / f"{name}.log"
        log.parent.mkdir(exist_ok=True)
        return Process(name, inside, log, self._reaper)

    def run(self, *command: str | Path, timeout: float = 300.0) -> str:
        """Run a program in the machine, and return its output."""
        done = subprocess.run(
            [*self._inside(), *map(str, command)],
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=timeout,
        )
        if done.returncode:
            said = (done.stderr or done.stdout).strip()
            raise NodeError(f"{' '.join(map(str, command))}: exit {done.returncode}: {said}")
        return done.stdout

    def on(self) -> None:
        """Create the namespaces, the veth pair and the cgroups."""
        slot = self.slot
        self._process.start()
        first = self._wait_first()
        self._first.write_text(str(first))
        outer = ["ip", "link", "add", slot.interface, "type", "veth"]
        _outside(*outer, "peer", "name", "eth0", "netns", str(first))
        _outside("ip", "address", "add", f"{slot.outside}/30", "dev", slot.interface)
        _outside("ip", "link", "set", slot.interface, "up")
        about = {
            "directory": slot.directory,
            "address": slot.address,
            "outside": slot.outside,
        }
        self.run("sh", "-c", SETUP.format(**about))
        slot.make_cgroups()

    def off(self) -> None:
        """End every process in the machine at once, as a power cut does."""
        self._process.kill()
        # the kernel removes it a moment after the namespace
        subprocess.run(["ip", "link", "delete", self.slot.interface], capture_output=True)

    def _inside(self) -> tuple[str, ...]:
        return (*self._enter("--net", "--mount", "--pid", "--ipc"), "env", f"PATH={PATH}")

    def _enter(self, *namespaces: str) -> tuple[str, ...]:
        """Return the command prefix that enters the machine now: it may have been switched off and on."""
        script = f'exec nsenter --target "$(cat {self._first})" {" ".join(namespaces)} -- "$@"'
        return ("sh", "-c", script, "sh")

    def _wait_first(self) -> int:
        """Return the process id of the machine's first process once it runs in all its namespaces."""
        parent = self._process.pid
        children = Path(f"/proc/{parent}/task/{parent}/children")
        deadline = time.monotonic() + STARTS_WITHIN
        while True:
            for child in children.read_text().split():
                if Path(f"/proc/{child}/comm").read_text().strip() == "sleep":
                    return int(child)
            if self._process.died or time.monotonic() > deadline:
                raise NodeError(f"the node's namespaces cannot be made\n{self._process.tail()}")
            time.sleep(0.01)


def _outside(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise NodeError(f"{' '.join(command)}: {done.stderr.strip()}")
