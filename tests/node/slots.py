"""Slots for the few nodes that this machine can run: a number held by a lock, and the names derived from it."""

import fcntl
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.controlplane.gobuild import cache_directory

CGROUPS = Path("/sys/fs/cgroup")
# Locks are the machine's, as cgroups and interfaces are: caches may be several.
LOCKS = Path("/run/lock")
SLOTS = 4
GONE_WITHIN = 20.0


class NodeError(Exception):
    """The node cannot start or does not work; the message names the remedy."""


@dataclass(frozen=True)
class Slot:
    """One node's number."""

    number: int

    @property
    def name(self) -> str:
        """Its cgroup."""
        return f"gatewright-node-{self.number}"

    @property
    def interface(self) -> str:
        """The host's end of its veth pair."""
        return f"gwnode{self.number}"

    @property
    def address(self) -> str:
        """The node's address."""
        return f"10.200.{self.number}.1"

    @property
    def outside(self) -> str:
        """The address of the host's end."""
        return f"10.200.{self.number}.2"

    @property
    def directory(self) -> Path:
        """The directory for the node's data: images, pods, volumes and logs."""
        return cache_directory() / "nodes" / str(self.number)

    @property
    def cgroups(self) -> list[Path]:
        """Its cgroups: one in each hierarchy of version 1, or a single one in version 2."""
        if (CGROUPS / "cgroup.controllers").exists():
            return [CGROUPS / self.name]
        # cpu and cpuacct may be two links to one hierarchy
        hierarchies = {each.resolve() for each in CGROUPS.iterdir() if each.is_dir()}
        return [each / self.name for each in sorted(hierarchies)]

    def make_cgroups(self) -> None:
        """Create the cgroups, with every controller that the kernel has."""
        controllers = CGROUPS / "cgroup.controllers"
        for name in controllers.read_text().split() if controllers.exists() else ():
            with suppress(OSError):
                (CGROUPS / "cgroup.subtree_control").write_text(f"+{name}")
        for cgroup in self.cgroups:
            cgroup.mkdir(exist_ok=True)


@contextmanager
def taken(numbers: Iterable[int] = range(SLOTS)) -> Iterator[Slot]:
    """Acquire a free slot, and clean it before and after its use."""
    for number in numbers:
        slot = Slot(number)
        slot.directory.mkdir(parents=True, exist_ok=True)
        LOCKS.mkdir(exist_ok=True)
        with (LOCKS / slot.name).open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            try:
                clean(slot)
                shutil.rmtree(slot.directory / "logs", ignore_errors=True)
                if _is_routed(slot.address):
                    continue
                yield slot
            finally:
                clean(slot)
            return
    raise NodeError(
        f"no node: {SLOTS} of them run on this machine already, or its network has their "
        f"addresses, {Slot(0).address} to {Slot(SLOTS - 1).address}"
    )


def _is_routed(address: str) -> bool:
    """Whether an address is in use on this machine's network."""
    command = ["ip", "-4", "route", "show", "match", address]
    routes = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return any(not route.startswith("default") for route in routes.splitlines())


def clean(slot: Slot) -> None:
    """End the processes in a slot's cgroups; remove the cgroups, the veth pair, pods and volumes, but no logs."""
    subprocess.run(["ip", "link", "delete", slot.interface], capture_output=True)
    deadline = time.monotonic() + GONE_WITHIN
    while any(each.exists() for each in slot.cgroups):
        if time.monotonic() > deadline:
            remains = ", ".join(filter(None, map(_remains, slot.cgroups)))
            raise NodeError(f"no node: cannot remove {remains}")
        for cgroup in slot.cgroups:
            _end(cgroup)
        time.sleep(0.05)
    for directory in ("var", "var.work", "kubelet", "plane", "volumes"):
        shutil.rmtree(slot.directory / directory, ignore_errors=True)


def _remains(cgroup: Path) -> str:
    """Return a cgroup with its processes, each with its state, such as D; "" if it is removed."""
    processes = [
        f"{name} {pid} {state}"
        for procs in cgroup.rglob("cgroup.procs")
        for pid in procs.read_text().split()
        for name, state in _of_process(pid)
    ]
    if not cgroup.exists():
        return ""
    return f"{cgroup} ({', '.join(processes) or 'no process is in it'})"


def _of_process(pid: str) -> Iterator[tuple[str, str]]:
    """Yield name and state of a process, unless it has ended."""
    with suppress(OSError):
        name, _, rest = Path(f"/proc/{pid}/stat").read_text().rpartition(")")
        yield name.partition("(")[2], rest.split()[0]


def _end(cgroup: Path) -> None:
    """Kill all processes in a cgroup and its descendants, and remove the empty ones."""
    inner = sorted(cgroup.rglob("cgroup.procs"), reverse=True)
    for procs in inner:
        for pid in procs.read_text().split():
            try:
                os.kill(int(pid), signal.SIGKILL)
            except ProcessLookupError:
                continue
        try:
            procs.parent.rmdir()
        except OSError:
            continue
