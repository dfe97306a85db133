"""Runs the pod of a Backup's CronJob on this machine: its scripts, with the planned environment."""

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from config.api.backup import Backup
from controller.reconcilers.backup import BACKUP
from controller.runtime.plan import Apply, Observed
from kube.resource import JsonObject
from tests.controlplane.processes import free_ports
from tests.databases.s3 import BUCKET, ObjectStore
from tests.databases.servers import USER, as_user

SCRIPTS = Path(__file__).parents[2] / "images/backup"
PATH = "/usr/local/bin:/usr/bin:/bin"
KEY = "store/secret+key"
SECRETS = {"store": {"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": KEY}}


class Store(Protocol):
    """An object store on this machine."""

    @property
    def url(self) -> str:
        """Its URL."""


@dataclass(frozen=True)
class Outcome:
    """The result of a script: its exit code, its output, and its termination message."""

    code: int
    printed: str
    word: str


@dataclass
class BackupPod:
    """One Backup, the contents of its Secrets, and the directory that its pods have as /tmp."""

    backup: Backup
    secrets: dict[str, dict[str, str]]
    scratch: Path
    host_name: str = "nightly-cronjob-29384720-x7k2p"
    path: str = PATH

    @property
    def folder(self) -> str:
        """The folder of its backups in the bucket."""
        return f"{self.environment()['DESTINATION_PATH'].removeprefix(BUCKET + '/')}/"

    def make(self) -> Outcome:
        """Make a backup, as the pod's container does."""
        return self._script(*self.container()["command"])

    def restore(self, *arguments: str, **environment: str) -> Outcome:
        """Restore a backup."""
        return self._script("/restore.sh", *arguments, **environment)

    def drill(self, *queries: tuple[str, str]) -> Outcome:
        """Restore the newest backup into a throw-away server, as the drill's container does."""
        with tempfile.TemporaryDirectory(prefix="gatewright-drill-") as directory:
            data, word = Path(directory, "data"), Path(directory, "termination-log")
            data.mkdir()
            environment = {
                "DRILL_DATA": str(data),
                "DRILL_PORT": str(free_ports(1)[0]),
                "TMPDIR": directory,
                "TERMINATION_LOG": str(word),
            }
            for at, (database, query) in enumerate(queries):
                environment |= {f"DRILL_DATABASE_{at}": database, f"DRILL_QUERY_{at}": query}
            command = [str(SCRIPTS / "drill.sh")]
            if os.geteuid() == 0:  # servers refuse to run as root
                for path in (directory, data):
                    shutil.chown(path, USER)
                command = as_user(command)
            done = self._run(command, environment)
            assert {path.name for path in Path(directory).iterdir()} <= {data.name, word.name}
            return Outcome(done.returncode, done.stdout, word.read_text())

    def container(self) -> JsonObject:
        """The planned container."""
        plan = BACKUP.plan(self.backup, Observed(), datetime.now(UTC))
        (cronjob,) = [
            write.object for step in plan.steps for write in step.writes if isinstance(write, Apply)
        ]
        return dict(cronjob["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"][0])

    def environment(self) -> dict[str, str]:
        """Its environment, with the values of its Secrets."""
        return {each["name"]: self._value(each) for each in self.container()["env"]}

    def _value(self, variable: JsonObject) -> str:
        if "value" in variable:
            return str(variable["value"])
        reference = variable["valueFrom"]["secretKeyRef"]
        return self.secrets[reference["name"]][reference["key"]]

    def rclone(self, *arguments: str, input: str | None = None) -> str:
        """Run rclone with the pod's environment, and return its output."""
        done = self._run(["rclone", *arguments], {"RCLONE_CONFIG": "/dev/null"}, input)
        assert done.returncode == 0, done.stdout
        return done.stdout

    def _script(self, script: str, *arguments: str, **environment: str) -> Outcome:
        word = self.scratch / "termination-log"
        word.unlink(missing_ok=True)
        local = {"TMPDIR": str(self.scratch), "TERMINATION_LOG": str(word), **environment}
        done = self._run([str(SCRIPTS / script.removeprefix("/")), *arguments], local)
        return Outcome(done.returncode, done.stdout, word.read_text() if word.exists() else "")

    def _run(
        self, command: Sequence[str], local: Mapping[str, str], input: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            env={**self.environment(), "PATH": self.path, "HOSTNAME": self.host_name, **local},
            input=input or "",
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
        )


def pod(
    store: Store,
    scratch: Path,
    *,
    type: str,
    destination: str = "s3",
    port: int,
    login: dict[str, str],
    retention: str = "30d",
    **connection: Any,
) -> BackupPod:
    """Return the pod of a Backup of a server on this machine to a store on this machine."""
    spec = {
        "source": {
            "type": type,
            "connection": {
                "host": "127.0.0.1",
                "port": port,
                "secretRef": {"name": "login"},
                **connection,
            },
        },
        "destination": {
            "type": destination,
            "bucket": BUCKET,
            "prefix": scratch.name,
            "endpoint": store.url,
            "secretRef": {"name": "store"},
        },
        "retention": retention,
    }
    backup = Backup.model_validate(
        {"metadata": {"name": "nightly", "namespace": "shop"}, "spec": spec}
    )
    return BackupPod(backup, {**SECRETS, "login": login}, scratch)


def instead(directory: Path, program: str, script: str, path: str = PATH) -> str:
    """Replace a program by a script, and return the new PATH; `$REAL` is the program."""
    directory.mkdir(exist_ok=True)
    found = shutil.which(program, path=path)
    (directory / program).write_text(f"#!/bin/bash\nset -o pipefail\nREAL={found}\n{script}\n")
    (directory / program).chmod(0o755)
    return f"{directory}:{path}"


def recorders(directory: Path, programs: Sequence[str], record: Path, path: str = PATH) -> str:
    """Replace programs by scripts that record their arguments."""
    script = f'printf "%s\\n" "$0 $*" >>{record}\nexec $REAL "$@"'
    for program in programs:
        instead(directory, program, script, path)
    return f"{directory}:{path}"


def replace(store: ObjectStore, folder: str, file: str, content: bytes) -> None:
    """Replace a file of a backup, and its sum with it."""
    sums = store.get(f"{folder}SHA256SUMS").decode().splitlines()
    other = [line for line in sums if not line.endswith(f"  {file}")]
    store.put(f"{folder}{file}", content)
    lines = [*other, f"{hashlib.sha256(content).hexdigest()}  {file}"]
    store.put(f"{folder}SHA256SUMS", "".join(f"{line}\n" for line in lines).encode())
