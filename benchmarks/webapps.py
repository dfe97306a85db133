"""WebApps on a real API server: what they cost the real controller process, by the API server's own audit log."""

import json
import statistics
import subprocess
import sys
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from benchmarks.measured import megabytes, progress, settled
from tests.controlplane.api import Api
from tests.controlplane.audit import WRITES
from tests.controlplane.plane import ControlPlane
from tests.controlplane.processes import Process, Reaper, free_ports
from tests.gatewright.processes import COMMAND

ROOT = Path(__file__).parents[1]
AGENT = "gatewright-controller"
KINDS = {
    "webapps": "/apis/example.com/v1",
    "deployments": "/apis/apps/v1",
    "services": "/api/v1",
}
PACED, PACE = 200, 0.05  # WebApps, one each so many seconds, for latencies without a queue


@dataclass(frozen=True)
class Latency:
    """Milliseconds from the moment a WebApp is stored to that in which both of its children are."""

    median: float
    p99: float
    max: float


@dataclass(frozen=True)
class Converged:
    """What it cost to make WebApps real."""

    webapps: int
    seconds: float
    cpu: float
    floor_seconds: float
    floor_cpu: float
    resident: float
    requests: dict[str, int]
    latency: Latency
    """All at once, so that most of it is waiting for one's turn."""


@dataclass(frozen=True)
class Restarted:
    """What it cost to start beside WebApps that are as they should be."""

    objects: int
    reconciles: int
    cpu: float
    cpu_of_start: float
    """Of a start beside no object at all."""
    resident: float
    resident_of_start: float
    writes: int
    changed: int


@dataclass(frozen=True)
class Running:
    """A controller at work."""

    pid: int
    metrics: str

    def reconciles(self) -> int:
        """Return how many reconciles of WebApps it counted: all, if none failed."""
        with urllib.request.urlopen(self.metrics, timeout=60) as answer:  # noqa: S310  our own listener
            text = answer.read().decode()
        line = 'controller_runtime_reconcile_total{controller="webapp",result="success"} '
        return next(int(float(each.removeprefix(line))) for each in text.splitlines() if each.startswith(line))


class Cluster:
    """A control plane with our kinds installed."""

    def __init__(self, plane: ControlPlane, directory: Path) -> None:
        self.plane = plane
        self.directory = directory
        self.reaper = Reaper()
        self.api = Api(plane.url, plane.ca_file, plane.token)
        plane.kubectl("apply", "--server-side", "-f", str(ROOT / "config/crd/bases"))
        plane.kubectl("wait", "--for=condition=Established", "crd", "--all")

    @contextmanager
    def controller(self, namespace: str) -> Iterator["Running"]:
        """Run `gatewright controller` with all kinds, on one namespace."""
        metrics, health = free_ports(2)
        command = [
            *(str(COMMAND), "controller", "--kubeconfig", str(self.plane.kubeconfig), "--namespaces", namespace),
            *("--namespace", "default", "--metrics-listen", f"127.0.0.1:{metrics}"),
            *("--health-listen", f"127.0.0.1:{health}"),
        ]
        process = Process("controller", command, self.directory / f"controller-{namespace}-{metrics}.log", self.reaper)
        process.start()
        try:
            yield Running(process.pid or 0, f"http://127.0.0.1:{metrics}/metrics")
        finally:
            if process.died:
                sys.exit(process.tail())
            process.end(30)

    def written(self, what: str, namespace: str, count: int, pace: float = 0.0) -> dict[str, float]:
        """Write objects in a process of its own; return the seconds that took, and those of processor time."""
        about = (self.plane.url, str(self.plane.ca_file), self.plane.token, namespace, str(count), str(pace))
        command = [sys.executable, "-m", "benchmarks.writes", what, *about]
        return dict(json.loads(subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout))  # noqa: S603

    def versions(self, namespace: str) -> dict[str, str]:
        """Return the resource version of every WebApp, Deployment and Service."""
        found: dict[str, str] = {}
        for plural, root in KINDS.items():
            body = self.api.request("GET", f"{root}/namespaces/{namespace}/{plural}")[1]
            items = json.loads(body)["items"]
            found |= {f"{plural}/{each['metadata']['name']}": each["metadata"]["resourceVersion"] for each in items}
        return found

    def events(self, since: int, namespace: str) -> list[dict[str, Any]]:
        """Return what was asked of a namespace since a mark."""
        return self.plane.audit_events(since, namespace=namespace)


@contextmanager
def cluster(directory: Path, parts: tuple[str, ...] | None) -> Iterator[Cluster]:
    """Run a control plane, of these parts or of all."""
    progress("starting a control plane")
    with ControlPlane.start(directory, parts=parts) as plane:
        yield Cluster(plane, directory)


def converge(cluster: Cluster, count: int) -> Converged:
    """Create WebApps beside a controller that is idle, and wait until it is again; and see what the least would be."""
    floor_namespace, namespace = f"floor-{count}", f"webapps-{count}"
    cluster.plane.create_namespace(floor_namespace)
    progress(f"{count} WebApps: the floor")
    cluster.written("webapps", floor_namespace, count)
    floor = cluster.written("children", floor_namespace, count)
    mark = cluster.plane.audit_mark()
    used, resident = populate(cluster, count)
    events = cluster.events(mark, namespace)
    ours = [each for each in events if each["userAgent"] == AGENT]
    first = min(_time(each) for each in events if _what(each) == "create webapps")
    last = max(_time(each) for each in ours if each["verb"] in WRITES)
    return Converged(
        webapps=count,
        seconds=round(last - first, 2),
        cpu=round(used, 2),
        floor_seconds=floor["seconds"],
        floor_cpu=floor["cpu"],
        resident=round(resident, 1),
        requests=dict(sorted(Counter(map(_what, ours)).items())),
        latency=latency_in(events),
    )


def populate(cluster: Cluster, count: int) -> tuple[float, float]:
    """Create WebApps beside a controller; return the processor time it took to make them real, and its memory then."""
    namespace = f"webapps-{count}"
    cluster.plane.create_namespace(namespace)
    with cluster.controller(namespace) as controller:
        before = settled(controller.pid)
        progress(f"{count} WebApps: converging")
        cluster.written("webapps", namespace, count)
        return settled(controller.pid) - before, megabytes(controller.pid)


def latency(cluster: Cluster) -> Latency:
    """Create WebApps at a walk, beside a controller that has nothing else to do."""
    namespace = "paced"
    cluster.plane.create_namespace(namespace)
    with cluster.controller(namespace) as controller:
        settled(controller.pid)
        mark = cluster.plane.audit_mark()
        progress(f"{PACED} WebApps, one by one")
        cluster.written("webapps", namespace, PACED, PACE)
        settled(controller.pid)
        return latency_in(cluster.events(mark, namespace))


def latency_in(events: list[dict[str, Any]]) -> Latency:
    """Return how long the WebApps waited whose stories are told by these events."""
    stored: dict[str, dict[str, float]] = {}
    for event in events:
        if _what(event) in ("create webapps", "patch deployments", "patch services"):
            stored.setdefault(event["objectRef"]["name"], {}).setdefault(_what(event), _time(event))
    waits = [(max(times.values()) - times["create webapps"]) * 1000 for times in stored.values()]
    cuts = statistics.quantiles(waits, n=100, method="inclusive")
    return Latency(*(round(each, 1) for each in (cuts[49], cuts[98], max(waits))))


def restart(cluster: Cluster, namespace: str) -> Restarted:
    """Start a controller where all WebApps are as they should be, and wait until it has looked at them all."""
    nothing = "nothing"
    cluster.plane.create_namespace(nothing)
    with cluster.controller(nothing) as controller:
        progress("restart: beside nothing")
        cpu_of_start, resident_of_start = settled(controller.pid), megabytes(controller.pid)
    before, mark = cluster.versions(namespace), cluster.plane.audit_mark()
    with cluster.controller(namespace) as controller:
        progress(f"restart: beside {len(before)} objects")
        cpu, resident = settled(controller.pid), megabytes(controller.pid)
        reconciles = controller.reconciles()
    after, events = cluster.versions(namespace), cluster.events(mark, namespace)
    return Restarted(
        objects=len(before),
        reconciles=reconciles,
        cpu=round(cpu, 2),
        cpu_of_start=round(cpu_of_start, 2),
        resident=round(resident, 1),
        resident_of_start=round(resident_of_start, 1),
        writes=sum(each["userAgent"] == AGENT and each["verb"] in WRITES for each in events),
        changed=sum(before.get(key) != after.get(key) for key in before | after),
    )


def _what(event: dict[str, Any]) -> str:
    about = event["objectRef"]
    return f"{event['verb']} {about['resource']}" + (f"/{about['subresource']}" if "subresource" in about else "")


def _time(event: dict[str, Any]) -> float:
    """Return when a request was answered."""
    return datetime.fromisoformat(event["stageTimestamp"]).timestamp()
