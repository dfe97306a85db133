"""The compared servers: Gatewright, the floor, and three webhooks in Go, each on the same core."""

import functools
import os
import shutil
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from http.client import HTTPException
from pathlib import Path

import yaml

from benchmarks.cluster import ROOT
from benchmarks.reviews import verdicts
from benchmarks.reviews.bodies import LABELLED, Body
from certs import issue_ca, issue_serving
from gatewright.commands.certs import write_pairs
from tests.controlplane.gobuild import build
from tests.controlplane.processes import free_ports
from tests.gatewright.started import COMMAND

GATEWRIGHT, FLOOR, TYPED, PARTIAL, HANDLER = (
    "gatewright",
    "floor",
    "typed",
    "partial",
    "controller-runtime",
)
GO_PROGRAMS = {TYPED: "typed", PARTIAL: "partial", HANDLER: "handler"}
STARTS_WITHIN = 180.0
MODULE = ROOT / "benchmarks" / "webhooks"


@dataclass(frozen=True, slots=True)
class Server:
    """A running server, and the seconds from its start to its first correct response."""

    name: str
    pid: int
    port: int
    trust: Path
    started: float

    @property
    def url(self) -> str:
        """The URL of the server."""
        return f"https://127.0.0.1:{self.port}"


class Bench:
    """Starts servers, with certificates and files in a directory, and checks a first response."""

    def __init__(self, directory: Path, first: Body) -> None:
        """Issue a certificate.

        `first` is the review that each server must answer before it counts as started.
        """
        now = datetime.now(UTC)
        ca = issue_ca("benchmark", now)
        write_pairs(directory, ca, issue_serving(ca, [], ["127.0.0.1"], now))
        self.directory = directory
        self.trust = directory / "trust.crt"
        self.trust.write_bytes(ca.certificate)
        self.context = ssl.create_default_context(cafile=str(self.trust))
        self._first = first

    @contextmanager
    def gatewright(
        self, policies: Path, *options: str, core: int | None = 0, decides: bool = True
    ) -> Iterator[Server]:
        """Run Gatewright's webhook with a policy set, on one core, or on all (None).

        It has no cluster unless `options` name one. `decides`: its set denies the first review.
        """
        port, metrics, health = free_ports(3)
        command = [
            *(
                str(COMMAND),
                "webhook",
                "--policies",
                str(policies),
                *(options or ("--no-cluster",)),
            ),
            *(
                "--tls-cert",
                str(self.directory / "tls.crt"),
                "--tls-key",
                str(self.directory / "tls.key"),
            ),
            *("--listen", f"127.0.0.1:{port}", "--metrics-listen", f"127.0.0.1:{metrics}"),
            *("--health-listen", f"127.0.0.1:{health}"),
        ]
        with self._running(GATEWRIGHT, command, port, core=core, decides=decides) as server:
            yield server

    @contextmanager
    def floor(self, layer: str = "decoded") -> Iterator[Server]:
        """Run the floor, or a part of it."""
        (port,) = free_ports(1)
        command = [
            sys.executable,
            "-m",
            "benchmarks.reviews.floor",
            str(self.directory),
            str(port),
            layer,
        ]
        with self._running(FLOOR, command, port, decides=False) as server:
            yield server

    @contextmanager
    def go(self, name: str, core: int | None = 0) -> Iterator[Server]:
        """Run a webhook in Go, on one core, or on all (None)."""
        (port,) = free_ports(1)
        program = go_program(GO_PROGRAMS[name])
        command = [
            str(program),
            f"-port={port}",
            f"-certificates={self.directory}",
            f"-production={LABELLED}",
        ]
        with self._running(name, command, port, core=core) as server:
            yield server

    @contextmanager
    def cluster(self) -> Iterator[Path]:
        """Run a fake API server with a labelled namespace; yields a kubeconfig."""
        command = on_core(1, [sys.executable, "-m", "benchmarks.reviews.cluster"])
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603
            assert process.stdout is not None
            kubeconfig = self.directory / "kubeconfig"
            kubeconfig.write_text(_kubeconfig(process.stdout.readline().strip()))
            try:
                yield kubeconfig
            finally:
                process.kill()

    @contextmanager
    def _running(
        self,
        name: str,
        command: Sequence[str],
        port: int,
        *,
        decides: bool = True,
        core: int | None = 0,
    ) -> Iterator[Server]:
        began = time.monotonic()
        with tempfile.TemporaryFile() as log:
            process = subprocess.Popen(on_core(core, command), cwd=ROOT, stdout=log, stderr=log)  # noqa: S603
            try:
                while fault := self._fault(port, decides=decides):
                    if process.poll() is not None or time.monotonic() - began > STARTS_WITHIN:
                        log.seek(0)
                        raise SystemExit(
                            f"{name}: {fault}\n{log.read()[-3000:].decode(errors='replace')}"
                        )
                    time.sleep(0.005)
                yield Server(name, process.pid, port, self.trust, time.monotonic() - began)
            finally:
                process.kill()
                process.wait()

    def _fault(self, port: int, *, decides: bool) -> str:
        try:
            response = verdicts.ask(port, self.context, self._first)
        except (OSError, HTTPException) as error:
            return f"does not answer: {error}"
        return verdicts.fault(response, self._first) if decides else ""


def on_core(number: int | None, command: Sequence[str]) -> list[str]:
    """Return a command that runs on one core: servers on the first, clients on the second.

    None stands for all cores.
    """
    cores = sorted(os.sched_getaffinity(0))
    if number is None or len(cores) == 1 or not shutil.which("taskset"):
        return list(command)
    return ["taskset", "-c", str(cores[number]), *command]


@functools.cache
def go_program(name: str) -> Path:
    """Return a program of benchmarks/webhooks, built once."""
    return build(MODULE, f"./cmd/{name}", f"benchmark-{name}", takes="1 to 3 minutes")


def _kubeconfig(url: str) -> str:
    named = {"name": "fake"}
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [named | {"cluster": {"server": url}}],
            "contexts": [named | {"context": {"cluster": "fake", "user": "fake"}}],
            "users": [named | {"user": {}}],
            "current-context": "fake",
        }
    )
