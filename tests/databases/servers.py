"""Real servers on loopback, each in a directory of its own."""

import os
import pwd
import shutil
import subprocess
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Self

from tests.controlplane.processes import Process, Reaper, free_ports
from tests.waiting import until

USER = "nobody"
READY_WITHIN = 60.0
ENDS_WITHIN = 10.0


def as_user(command: Iterable[str]) -> list[str]:
    """Return a command as an unprivileged user runs it; only root may."""
    group = str(pwd.getpwnam(USER).pw_gid)
    return ["setpriv", "--reuid", USER, "--regid", group, "--clear-groups", "--", *command]


class Server(ABC):
    """A server process, its port and its directory. If the tests run as root, it runs as an unprivileged user."""

    name: str
    unprivileged = True

    def __init__(self) -> None:
        """Create its directory."""
        self.port = free_ports(1)[0]
        self.directory = Path(tempfile.mkdtemp(prefix=f"gatewright-{self.name}-"))
        self._reaper = Reaper()
        self._process: Process | None = None
        self._steps_down = self.unprivileged and os.geteuid() == 0
        if self._steps_down:
            account = pwd.getpwnam(USER)
            os.chown(self.directory, account.pw_uid, account.pw_gid)

    def command(self, *command: str | Path) -> list[str]:
        """Return a command as the server's user runs it."""
        return as_user(map(str, command)) if self._steps_down else [*map(str, command)]

    def run(
        self, *command: str | Path, input: str | None = None, env: Mapping[str, str] | None = None
    ) -> str:
        """Run a command, and return its output."""
        done = self.attempt(*command, input=input, env=env)
        assert done.returncode == 0, f"{command[0]}: {done.stderr}{done.stdout}"
        return done.stdout

    def attempt(
        self, *command: str | Path, input: str | None = None, env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a command to its end; it may fail."""
        return subprocess.run(
            self.command(*command),
            input=input,
            env={"PATH": "/usr/bin:/bin", "HOME": str(self.directory), **(env or {})},
            cwd=self.directory,
            capture_output=True,
            text=True,
            timeout=60,
        )

    def start(self, *command: str | Path) -> None:
        """Start it, and wait until it answers a query: a listening socket is not enough."""
        self._process = Process(
            self.name, self.command(*command), self.directory / "log", self._reaper
        )
        self._process.start()
        until(
            lambda: self._process.died or self.answers(),
            within=READY_WITHIN,
            problem=self._process.tail,
        )
        assert not self._process.died, self._process.tail()

    @abstractmethod
    def answers(self) -> bool:
        """Whether it answers a query."""

    @abstractmethod
    def prepare(self) -> None:
        """Initialize its data directory, and start it."""

    def close(self) -> None:
        """End it, and remove its directory."""
        if self._process is not None and not self._process.died:
            self._process.end(ENDS_WITHIN)
        self._reaper.close()
        shutil.rmtree(self.directory)

    def __enter__(self) -> Self:
        try:
            self.prepare()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()
