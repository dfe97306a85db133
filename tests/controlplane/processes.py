"""Processes that never outlive the one that started them, whatever ends it."""

import os
import random
import signal
import socket
import subprocess
import sys
from pathlib import Path

# Reads "+PID" and "-PID"; when its input closes, because the writer ended, it kills the remaining
# ones. (PR_SET_PDEATHSIG would do for a main thread; it also fires when a worker thread that
# started the process ends.)
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


class Reaper:
    """A small process that kills what we started, should we be gone."""

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
        """Kill the process group `pid` when we are gone."""
        self._process.stdin.write(f"+{pid}\n")

    def forget(self, pid: int) -> None:
        """Leave it alone: it has ended."""
        self._process.stdin.write(f"-{pid}\n")

    def close(self) -> None:
        """End it; what it still watches is killed."""
        self._process.stdin.close()
        self._process.wait()


class Process:
    """One part of the control plane: its command, its log, and its life."""

    def __init__(self, name: str, command: list[str], log: Path, reaper: Reaper) -> None:
        self.name = name
        self.command = command
        self.log = log
        self._reaper = reaper
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """Its process id while we have not killed it."""
        return self._process.pid if self._process else None

    @property
    def died(self) -> bool:
        """Whether it ended though we did not kill it."""
        return self._process is not None and self._process.poll() is not None

    def start(self) -> None:
        """Start it; its log is appended to."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self.command,
                cwd=self.log.parent,
                env={"PATH": "/usr/bin:/bin", "HOME": str(self.log.parent)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._reaper.watch(self._process.pid)

    def signal(self, number: signal.Signals) -> None:
        """Send it, and what it started, a signal, if it was not killed."""
        if self._process and self._process.poll() is None:
            os.killpg(self._process.pid, number)

    def kill(self) -> None:
        """End it with SIGKILL, and wait; after SIGTERM an API server would drain for ten seconds and more."""
        if not self._process:
            return
        self.signal(signal.SIGKILL)
        self._process.wait()
        self._reaper.forget(self._process.pid)
        self._process = None

    def end(self, within: float) -> int:
        """End it, and what it started, with SIGTERM, and return its exit code; TimeoutExpired where it takes longer."""
        if not self._process:
            raise ValueError(f"{self.name} does not run")
        self.signal(signal.SIGTERM)
        code = self._process.wait(within)
        self._reaper.forget(self._process.pid)
        self._process = None
        return code

    def wait(self) -> int:
        """Wait until it ends by itself, and return its exit code."""
        if not self._process:
            raise ValueError(f"{self.name} does not run")
        return self._process.wait()

    def tail(self, lines: int = 20) -> str:
        """The end of its log."""
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        return f"--- {self.name}: the end of {self.log}\n" + "\n".join(text.splitlines()[-lines:])


def free_ports(count: int) -> list[int]:
    """Free ports, below the range of outgoing connections.

    A client that tries again and again to reach a killed part could otherwise be given the part's
    own port, connect to itself, and keep the part from coming back.
    """
    ports: list[int] = []
    while len(ports) < count:
        port = random.randrange(20_000, 32_000)
        with socket.socket() as probe:
            if port not in ports and probe.connect_ex(("127.0.0.1", port)) != 0:
                ports.append(port)
    return ports
