"""Child processes that end with their parent, even if that is killed."""

import os
import random
import signal
import socket
import subprocess
import sys
from pathlib import Path

# Reads "+PID" and "-PID" lines; when its input closes, because the writer ended, it kills the remaining processes.
# (PR_SET_PDEATHSIG would work for a main thread only: it fires when the thread that started the process ends.)
REAPER = """
import os, signal, sys
left = set()
for line in sys.stdin:
    (left.add if line[0] == "+" else left.discard)(int(line[1:]))
for pid in left:
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
"""

# A setting of programs in Go, such as the API server, kubectl and helm: they collect garbage once the heap is five times
# what is used, not twice. That saves a quarter of their CPU, for a third more memory.
GOGC = "400"


class Reaper:
    """A small process that kills the started processes if this process ends."""

    def __init__(self) -> None:
        command = [sys.executable, "-I", "-S", "-c", REAPER]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, text=True, bufsize=1, start_new_session=True
        )

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def watch(self, pid: int) -> None:
        """Kill the process group `pid` when this process ends."""
        self._process.stdin.write(f"+{pid}\n")

    def forget(self, pid: int) -> None:
        """Stop watching a process that has ended."""
        self._process.stdin.write(f"-{pid}\n")

    def close(self) -> None:
        """End the reaper, which kills the processes that it still watches."""
        self._process.stdin.close()
        self._process.wait()


class Process:
    """One component of the control plane: its command, its log and its process."""

    def __init__(self, name: str, command: list[str], log: Path, reaper: Reaper) -> None:
        self.name = name
        self.command = command
        self.log = log
        self._reaper = reaper
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """Its process id, or None if it was killed."""
        return self._process.pid if self._process else None

    @property
    def died(self) -> bool:
        """Whether it ended without being killed."""
        return self._process is not None and self._process.poll() is not None

    def start(self) -> None:
        """Start it; its output is appended to the log."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self.command,
                cwd=self.log.parent,
                env={"PATH": "/usr/bin:/bin", "HOME": str(self.log.parent), "GOGC": GOGC},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._reaper.watch(self._process.pid)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to its process group, if it was not killed."""
        if self._process and self._process.poll() is None:
            os.killpg(self._process.pid, number)

    def kill(self) -> None:
        """End it with SIGKILL, and wait; after SIGTERM an API server drains for more than ten seconds."""
        if not self._process:
            return
        self.signal(signal.SIGKILL)
        self._process.wait()
        self._reaper.forget(self._process.pid)
        self._process = None

    def end(self, within: float) -> int:
        """End the process group with SIGTERM, and return the exit code. Raises TimeoutExpired if it takes longer."""
        if not self._process:
            raise ValueError(f"{self.name} does not run")
        self.signal(signal.SIGTERM)
        code = self._process.wait(within)
        self._reaper.forget(self._process.pid)
        self._process = None
        return code

    def wait(self) -> int:
        """Wait until the process ends, and return its exit code."""
        if not self._process:
            raise ValueError(f"{self.name} does not run")
        return self._process.wait()

    def tail(self, lines: int = 20) -> str:
        """The end of its log."""
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        return f"--- {self.name}: the end of {self.log}\n" + "\n".join(text.splitlines()[-lines:])


# Not the module's generator: Hypothesis seeds it, and processes would be given the same ports.
CHANCE = random.SystemRandom()
GIVEN: set[int] = set()


def free_ports(count: int) -> list[int]:
    """Return free ports below the range of outgoing connections, each once in this process.

    A client that keeps retrying a killed component could otherwise be given the component's port as its source port,
    connect to itself, and block the restart.
    """
    ports: list[int] = []
    while len(ports) < count:
        port = CHANCE.randrange(20_000, 32_000)
        with socket.socket() as probe:
            if port not in GIVEN and probe.connect_ex(("127.0.0.1", port)) != 0:
                ports.append(port)
                GIVEN.add(port)
    return ports
