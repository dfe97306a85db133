"""The chart on a node, installed by Helm as its users do."""

import json
import subprocess
from pathlib import Path

from tests.controlplane.binaries import helm_binary
from tests.node.node import Node

CHART = Path(__file__).parents[2] / "charts/gatewright"
NAMESPACE = "gatewright-system"
NAME = "gatewright"


class ReleaseError(Exception):
    """helm failed unexpectedly; the message is its output."""


class Release:
    """One release of the chart."""

    def __init__(self, node: Node, name: str = NAME, namespace: str = NAMESPACE) -> None:
        self.node = node
        self.name = name
        self.namespace = namespace

    def helm(self, *arguments: str | Path, timeout: float = 300.0) -> str:
        """Run helm in the release's namespace, and return its output."""
        command = [helm_binary(), *arguments, "--namespace", self.namespace]
        done = subprocess.run(
            [str(each) for each in command],
            env=self.node.kubectl.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
        )
        if done.returncode:
            raise ReleaseError(f"helm {arguments[0]}: exit {done.returncode}: {done.stderr}")
        return done.stdout

    def install(self, *sets: str, chart: Path = CHART) -> str:
        """Install or upgrade a chart, and wait until its pods are ready."""
        values = [f"--set={each}" for each in sets]
        waiting = ("--create-namespace", "--wait", "--timeout=4m")
        return self.helm("upgrade", "--install", self.name, chart, *waiting, *values)

    def status(self) -> str | None:
        """Return the release's status; None if there is none."""
        listed = json.loads(self.helm("list", "--output", "json"))
        return next((str(each["status"]) for each in listed if each["name"] == self.name), None)

    def uninstall(self) -> None:
        """Uninstall the chart."""
        self.helm("uninstall", self.name, "--wait", "--timeout=4m")
