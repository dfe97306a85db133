"""A control plane for benchmarks, and the real controller process on it."""

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.measured import progress
from tests.controlplane.plane import ControlPlane
from tests.controlplane.processes import Process, Reaper, free_ports
from tests.gatewright.started import COMMAND

ROOT = Path(__file__).parents[1]
PAGE = 500  # objects of a list
KINDS = {
    "webapps": "/apis/example.com/v1",
    "deployments": "/apis/apps/v1",
    "services": "/api/v1",
}


@dataclass(frozen=True)
class Running:
    """A running Gatewright process."""

    pid: int
    metrics: str
    health: str

    def reconciles(self, kind: str = "webapp") -> int:
        """Return the number of reconciles of a kind that succeeded, by a controller's metrics."""
        with urllib.request.urlopen(self.metrics, timeout=60) as answer:  # noqa: S310
            text = answer.read().decode()
        line = f'controller_runtime_reconcile_total{{controller="{kind}",result='
        done = (each.rpartition(" ") for each in text.splitlines() if each.startswith(line))
        return sum(int(float(count)) for name, _, count in done if "error" not in name)


class Cluster:
    """A control plane with Gatewright's kinds installed."""

    def __init__(self, plane: ControlPlane, directory: Path) -> None:
        self.plane = plane
        self.directory = directory
        self.reaper = Reaper()
        self.api = plane.api
        plane.kubectl("apply", "--server-side", "-f", str(ROOT / "config/crd/bases"))
        plane.kubectl("wait", "--for=condition=Established", "crd", "--all")

    def controller(self, namespace: str) -> AbstractContextManager[Running]:
        """Run `gatewright controller` with all kinds, on one namespace."""
        return self.running("controller", "--namespaces", namespace, "--namespace", "default")

    @contextmanager
    def running(self, verb: str, *options: str) -> Iterator[Running]:
        """Run a Gatewright process as admin of this cluster."""
        metrics, health = free_ports(2)
        command = [
            *(str(COMMAND), verb, "--kubeconfig", str(self.plane.kubeconfig), *options),
            *("--metrics-listen", f"127.0.0.1:{metrics}", "--health-listen", f"127.0.0.1:{health}"),
        ]
        process = Process(verb, command, self.directory / f"{verb}-{metrics}.log", self.reaper)
        process.start()
        try:
            pages = f"http://127.0.0.1:{metrics}/metrics", f"http://127.0.0.1:{health}/healthz"
            yield Running(process.pid or 0, *pages)
        finally:
            if process.died:
                sys.exit(process.tail())
            if verb == "controller":
                process.end(30)
            else:  # on SIGTERM it would wait for the API server to close its connections
                process.kill()

    def written(self, what: str, namespace: str, count: int, pace: float = 0.0) -> dict[str, float]:
        """Write objects in a separate process.

        Return the elapsed seconds, and the seconds of processor time.
        """
        about = (
            self.plane.url,
            str(self.plane.ca_file),
            self.plane.token,
            namespace,
            str(count),
            str(pace),
        )
        command = [sys.executable, "-m", "benchmarks.writes", what, *about]
        seen = "services" if what == "children" else what
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as process:  # noqa: S603
            while True:
                try:
                    answer = process.communicate(timeout=2)[0]
                    break
                except subprocess.TimeoutExpired:
                    progress(
                        f"{namespace}: writing {what},", f"{self.count(seen, namespace)} of {count}"
                    )
        if process.returncode:
            sys.exit(f"{what} were not written: exit code {process.returncode}")
        return dict(json.loads(answer))

    def count(self, plural: str, namespace: str) -> int:
        """Return how many objects of a kind there are."""
        answer = json.loads(
            self.api.request("GET", f"{KINDS[plural]}/namespaces/{namespace}/{plural}?limit=1")[1]
        )
        return len(answer["items"]) + int(answer["metadata"].get("remainingItemCount", 0))

    def versions(self, namespace: str) -> dict[str, str]:
        """Return the resource version of every WebApp, Deployment and Service."""
        return {
            f"{plural}/{each['metadata']['name']}": each["metadata"]["resourceVersion"]
            for plural in KINDS
            for each in self.objects(plural, namespace)
        }

    def objects(self, plural: str, namespace: str) -> Iterator[dict[str, Any]]:
        """Yield the objects of a kind."""
        more = ""
        while True:
            path = f"{KINDS[plural]}/namespaces/{namespace}/{plural}?limit={PAGE}&continue={more}"
            answer = json.loads(self.api.request("GET", path)[1])
            yield from answer["items"]
            if not (more := answer["metadata"].get("continue", "")):
                return

    def events(self, since: int, namespace: str) -> list[dict[str, Any]]:
        """Return the requests about a namespace since a mark."""
        return self.plane.audit_events(since, namespace=namespace)


@contextmanager
def cluster(directory: Path, parts: tuple[str, ...] | None) -> Iterator[Cluster]:
    """Run a control plane with these components, by default all."""
    progress("starting a control plane")
    with ControlPlane.start(directory, parts=parts) as plane:
        place = Cluster(plane, directory)
        try:
            yield place
        finally:
            place.reaper.close()
