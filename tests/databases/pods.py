"""Runs planned pods on this machine, without containers: each volume becomes a directory.

Paths and host names are replaced in commands, environment and mounted files; everything else is as planned. If the
tests run as root, the pods run as another user, as they would in a cluster.
"""

import os
import pwd
import re
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from kube.resource import JsonObject

USER = "nobody"
SECONDS = 60


class Machine:
    """State that pods share: a directory, the programs' path, ConfigMaps and Secrets, volumes, and host names."""

    def __init__(self, directory: Path, programs: Path) -> None:
        """Use an empty directory, and the directory of the image's programs."""
        self.directory = directory
        self.path = f"{programs}:/usr/local/bin:/usr/bin:/bin"
        self.user = USER if os.geteuid() == 0 else None
        self.config_maps: dict[str, dict[str, str]] = {}
        self.secrets: dict[str, dict[str, str]] = {}
        self.names: dict[str, str] = {}
        self.environment: dict[str, str] = {}  # of the images
        self.own(directory)

    def own(self, path: Path) -> Path:
        """Change the owner of a path to the user that pods run as."""
        if self.user is not None:
            account = pwd.getpwnam(self.user)
            os.chown(path, account.pw_uid, account.pw_gid)
        return path

    def volume(self, name: str) -> Path:
        """Return the directory of a volume, created at the first call."""
        path = self.directory / name
        if not path.exists():
            path.mkdir(mode=0o700)
            self.own(path)
        return path


class Pod:
    """One pod: its volumes as directories, its containers as processes."""

    def __init__(
        self, machine: Machine, name: str, template: JsonObject, claims: Mapping[str, Path]
    ) -> None:
        """Create the volumes of a pod from its template; `claims` maps claims to volumes."""
        self.machine = machine
        self.name = name
        self.spec = template["spec"]
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        directory = machine.volume(f"pod-{name}")
        self.volumes = {
            declared["name"]: self._volume(declared, directory, claims)
            for declared in self.spec.get("volumes", ())
        }
        self.volumes |= {claim: path for claim, path in claims.items() if claim not in self.volumes}
        self.log = directory / "log"
        for volume in self.spec.get("volumes", ()):
            self._fill(volume)

    def _volume(self, volume: JsonObject, directory: Path, claims: Mapping[str, Path]) -> Path:
        if claim := volume.get("persistentVolumeClaim"):
            return claims[claim["claimName"]]
        path = directory / volume["name"]
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir(mode=0o700)
        return self.machine.own(path)

    def _fill(self, volume: JsonObject) -> None:
        files: dict[str, str] = {}
        if "configMap" in volume:
            files = {
                key: self.here(text)
                for key, text in self.machine.config_maps[volume["configMap"]["name"]].items()
            }
        for source in volume.get("projected", {}).get("sources", ()):
            if "secret" in source:
                values = self.machine.secrets[source["secret"]["name"]]
                files |= {item["path"]: values[item["key"]] for item in source["secret"]["items"]}
        for name, text in files.items():
            path = self.volumes[volume["name"]] / name
            path.write_text(text)
            self.machine.own(path)

    def here(self, text: str) -> str:
        """Return a text of the pod with this machine's paths and addresses."""
        containers = [*self.spec.get("initContainers", ()), *self.spec["containers"]]
        mounts = {
            mount["mountPath"]: mount["name"]
            for container in containers
            for mount in container["volumeMounts"]
        }
        places = {
            path: str(self.volumes[volume]) for path, volume in mounts.items()
        } | self.machine.names
        longest = sorted(places, key=len, reverse=True)
        return re.sub(
            rf"(?<![\w./-])({'|'.join(map(re.escape, longest))})(?![\w.-])",
            lambda found: places[found[0]],
            text,
        )

    def environment(self, container: JsonObject) -> dict[str, str]:
        """Return the environment of a container's processes."""
        values = {"PATH": self.machine.path, "HOSTNAME": self.name, **self.machine.environment}
        for variable in container.get("env", ()):
            source = variable.get("valueFrom", {})
            if "fieldRef" in source:
                fields = {"metadata.name": self.name, "metadata.namespace": "default"}
                fields["status.podIP"] = "127.0.0.1"
                values[variable["name"]] = fields[source["fieldRef"]["fieldPath"]]
            elif "secretKeyRef" in source:
                values[variable["name"]] = self.machine.secrets[source["secretKeyRef"]["name"]][
                    source["secretKeyRef"]["key"]
                ]
            else:
                text = re.sub(r"\$\((\w+)\)", lambda found: values[found[1]], variable["value"])
                values[variable["name"]] = self.here(text)
        return values

    def start(self, container: str, *, command: Sequence[str] = ()) -> subprocess.Popen[bytes]:
        """Start a container, with the planned command or another one."""
        about = self._container(container)
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                self._as_user(command or [*map(self.here, about["command"])]),
                env=self.environment(about),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd="/",
                start_new_session=True,
            )
        self._running[container] = process
        return process

    def run(self, container: str) -> int:
        """Run a container to its end and return its exit code."""
        return self.start(container).wait(SECONDS)

    def exec(
        self, container: str, *command: str, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a command in a container, as `kubectl exec` does."""
        about = self._container(container)
        return subprocess.run(
            self._as_user(command),
            env={**self.environment(about), **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            cwd="/",
            timeout=SECONDS,
            check=False,
        )

    def signal(self, container: str, number: signal.Signals) -> int:
        """Send a signal to a container's first process and wait for its end."""
        process = self._running.pop(container)
        process.send_signal(number)
        return process.wait(SECONDS)

    def kill(self) -> None:
        """End all processes of the pod at once, as if its node failed."""
        for process in self._running.values():
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
            process.wait(SECONDS)
        self._running.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        for name in list(self._running):
            self.signal(name, signal.SIGQUIT)  # PostgreSQL leaves nothing in shared memory then

    def logged(self) -> str:
        """Return the output of the containers."""
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def _container(self, name: str) -> JsonObject:
        containers = [*self.spec.get("initContainers", ()), *self.spec["containers"]]
        return next(each for each in containers if each["name"] == name)

    def _as_user(self, command: Sequence[str]) -> list[str]:
        if self.machine.user is None:
            return list(command)
        account = pwd.getpwnam(self.machine.user)
        ids = [f"--reuid={account.pw_uid}", f"--regid={account.pw_gid}", "--clear-groups"]
        return ["setpriv", *ids, "--", *command]
