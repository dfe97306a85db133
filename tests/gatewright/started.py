"""Starts Gatewright processes from the command line, against a test control plane."""

import json
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import pytest

from gatewright.cli import main
from tests.controlplane.plane import ControlPlane
from tests.controlplane.processes import Process, Reaper, free_ports

READY_WITHIN = 120.0  # seconds; reasons come up through several kinds, each looked up every 20 s
ENDS_WITHIN = 30.0
COMMAND = Path(sys.executable).with_name("gatewright")


def once(*arguments: str, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a `gatewright` command to its end, with the packages at `path` installed."""
    environment = {"HOME": "/nowhere", **({"PYTHONPATH": str(path)} if path else {})}
    return subprocess.run(
        [str(COMMAND), *arguments], env=environment, capture_output=True, text=True, timeout=120
    )


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> subprocess.CompletedProcess[str]:
    """Call a `gatewright` command in this process, where being a process is not what is tested."""
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    out, err = capsys.readouterr()
    code = ended.value.code
    assert isinstance(code, int)
    return subprocess.CompletedProcess(arguments, code, out, err)


class GatewrightError(Exception):
    """A Gatewright process ended or did not become ready; the message has the failed checks and the end of its log."""


class Gatewright:
    """One running Gatewright process: `gatewright run`, `webhook` or `controller`. Its methods block."""

    def __init__(
        self,
        plane: ControlPlane | None,
        directory: Path,
        verb: str,
        *options: str,
        kubeconfig: Path | None = None,
    ):
        """Choose free ports and a log in `directory`; act as admin of `plane`, or with another kubeconfig."""
        listen, metrics, health = free_ports(3)
        kubeconfig = kubeconfig or (plane.kubeconfig if plane else None)
        self.url = f"https://127.0.0.1:{listen}"
        self.metrics_url = f"http://127.0.0.1:{metrics}/metrics"
        self.health_url = f"http://127.0.0.1:{health}"
        command = [
            *(str(COMMAND), verb, *(("--kubeconfig", str(kubeconfig)) if kubeconfig else ())),
            *("--metrics-listen", f"127.0.0.1:{metrics}", "--health-listen", f"127.0.0.1:{health}"),
            *(("--listen", f"127.0.0.1:{listen}") if verb != "controller" else ()),
            *options,
        ]
        self._reaper = Reaper()
        self.process = Process(
            verb, command, directory / f"gatewright-{verb}-{listen}.log", self._reaper
        )

    @classmethod
    def run(
        cls,
        plane: ControlPlane,
        directory: Path,
        *options: str,
        policies: Path,
        kubeconfig: Path | None = None,
    ) -> Self:
        """Start `gatewright run`, which unregisters at its end, and wait until the API server calls it."""
        options = ("--policies", str(policies), "--unregister", *options)
        started = cls(plane, directory, "run", *options, kubeconfig=kubeconfig)
        try:
            return started.start().until(
                "registered", lambda: registered(plane) == {"validate", "mutate"}
            )
        except BaseException:
            started.close()
            raise

    def start(self) -> Self:
        """Start the process, after creation, kill or end, and wait until it is ready."""
        return self.launch().until("ready", self.is_ready)

    def launch(self) -> Self:
        """Start the process and wait until it answers, ready or not."""
        self.process.start()
        return self.until("started", lambda: self.get("/healthz")[0] != 0)

    def is_ready(self) -> bool:
        """Return whether /readyz succeeds."""
        return self.get("/readyz")[0] == 200

    def get(self, path: str) -> tuple[int, str]:
        """Return status and body of a page of the health listener; status 0 if it does not listen."""
        try:
            with urllib.request.urlopen(f"{self.health_url}{path}", timeout=5) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError as error:
            return 0, str(error)

    def logged(self) -> list[dict[str, Any]]:
        """Return the log lines."""
        return [
            json.loads(line)
            for line in self.process.log.read_text().splitlines()
            if line.startswith("{")
        ]

    def tracebacks(self) -> list[str]:
        """Return the log lines with this message, and all lines that are not JSON."""
        lines = self.process.log.read_text().splitlines()
        return [
            line for line in lines if not line.startswith("{") or "exception" in json.loads(line)
        ]

    def until(self, what: str, sign: Callable[[], bool]) -> Self:
        """Poll until the condition is true, the process ends, or the time is up."""
        deadline = time.monotonic() + READY_WITHIN
        while not sign():
            if self.process.died or time.monotonic() > deadline:
                wrong = "".join(
                    f"{line}\n"
                    for line in self.get("/readyz")[1].splitlines()
                    if line.startswith("[-]")
                )
                raise GatewrightError(
                    f"gatewright {self.process.name}: not {what}\n{wrong}{self.process.tail()}"
                )
            time.sleep(0.05)
        return self

    def kill(self) -> None:
        """End it with SIGKILL."""
        self.process.kill()

    def end(self) -> int:
        """End it with SIGTERM and return its exit code."""
        return self.process.end(ENDS_WITHIN)

    def close(self) -> None:
        """Kill the process if it still runs."""
        if self.process.pid is not None and not self.process.died:
            self.end()
        self._reaper.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()


def unnumber_webhooks(text: str) -> str:
    """Return a text with each webhook under its first name: which of several is called depends on all policies in force."""
    return re.sub(r"\b(validate|mutate)-\d+\.gatewright\.io", r"\1.gatewright.io", text)


def registered(plane: ControlPlane) -> set[str]:
    """Return the operations for which the API server calls the webhook."""
    items = [
        item
        for kind in ("validatingwebhookconfigurations", "mutatingwebhookconfigurations")
        for item in plane.api.get(f"/apis/admissionregistration.k8s.io/v1/{kind}")["items"]
    ]
    webhooks = [
        webhook for item in items for webhook in item.get("webhooks", ()) if webhook.get("rules")
    ]
    names = [webhook["name"] for webhook in webhooks if webhook["name"].endswith(".gatewright.io")]
    return {
        re.split("[-.]", name)[0] for name in names
    }  # validate.gatewright.io, validate-2.gatewright.io …
