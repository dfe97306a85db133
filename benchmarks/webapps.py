"""WebApps on a real API server: the controller's cost, from the API server's audit log."""

import statistics
import time
from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from benchmarks.cluster import KINDS, Cluster
from benchmarks.measured import LOOK_UPS_CPU, megabytes, progress, settled
from tests.controlplane.audit import WRITES

AGENT = "gatewright-controller"
PHASES = {"alone": "Deploying", "whole": "Running"}  # the last phase that a WebApp can reach
PACED_NAMESPACE = "paced"
PACED, PACE = 200, 0.05  # WebApps, and the seconds between two, for latencies without a queue


@dataclass(frozen=True)
class Latency:
    """Milliseconds from storing a WebApp to storing the second of its children."""

    median: float
    p99: float
    max: float


@dataclass(frozen=True)
class Floor:
    """The minimum cost in Python of a controller's writes for this many WebApps."""

    webapps: int
    seconds: float
    cpu: float


@dataclass(frozen=True)
class Converged:
    """The cost of reconciling new WebApps, and the baseline for the same number."""

    where: str
    webapps: int
    seconds: float
    cpu: float
    floor_seconds: float
    floor_cpu: float
    resident: float
    requests: dict[str, int]
    latency: Latency
    """Latency when all are created at once, which is mostly queueing."""


@dataclass(frozen=True)
class Restarted:
    """The cost of a start with WebApps that are up to date."""

    objects: int
    reconciles: int
    cpu: float
    resident: float
    writes: int
    others: int
    """Requests in the namespace that are neither writes nor watches."""
    changed: int


def floor(cluster: Cluster, count: int) -> Floor:
    """Write this many WebApps and their children and statuses, without a controller."""
    namespace = f"floor-{count}"
    cluster.plane.create_namespace(namespace)
    progress(f"the floor for {count} WebApps")
    cluster.written("webapps", namespace, count)
    found = cluster.written("children", namespace, count)
    return Floor(count, found["seconds"], found["cpu"])


def converge(cluster: Cluster, where: str, count: int, least: Floor) -> Converged:
    """Create WebApps for an idle controller, and wait until it is idle again."""
    mark = cluster.plane.audit_mark()
    used, resident = populate(cluster, count, PHASES[where])
    events = cluster.events(mark, _namespace(count))
    ours = [each for each in events if each["userAgent"] == AGENT]
    first = min(_time(each) for each in events if _what(each) == "create webapps")
    last = max(_time(each) for each in ours if each["verb"] in WRITES)
    return Converged(
        where=where,
        webapps=count,
        seconds=round(last - first, 2),
        cpu=round(used, 2),
        floor_seconds=round(least.seconds * count / least.webapps, 2),
        floor_cpu=round(least.cpu * count / least.webapps, 2),
        resident=round(resident, 1),
        requests=dict(
            sorted(
                Counter(
                    _what(each) if each["verb"] != "watch" else "watch" for each in ours
                ).items()
            )
        ),
        latency=latency_in(events),
    )


def populate(cluster: Cluster, count: int, phase: str = PHASES["alone"]) -> tuple[float, float]:
    """Create WebApps while a controller runs.

    Return its processor time until all are in a phase, and its memory then.
    """
    namespace = _namespace(count)
    cluster.plane.create_namespace(namespace)
    with cluster.controller(namespace) as controller:
        before = settled(controller.pid)

        def waiting() -> None:
            progress(
                f"{namespace}: converging,",
                f"{cluster.count('services', namespace)} of {count} Services",
            )

        def is_done() -> bool:
            found = cluster.objects("webapps", namespace)
            return [each.get("status", {}).get("phase") for each in found] == [phase] * count

        cluster.written("webapps", namespace, count)
        used = settled(controller.pid, waiting, is_done, LOOK_UPS_CPU) - before
        return used, megabytes(controller.pid)


def latency(cluster: Cluster) -> Latency:
    """Create WebApps slowly, for an otherwise idle controller."""
    cluster.plane.create_namespace(PACED_NAMESPACE)
    with cluster.controller(PACED_NAMESPACE) as controller:
        settled(controller.pid)
        mark = cluster.plane.audit_mark()
        cluster.written("webapps", PACED_NAMESPACE, PACED, PACE)
        # Not until it is idle: on a busy machine, look-ups of what never becomes ready take longer.
        while any(cluster.count(plural, PACED_NAMESPACE) < PACED for plural in KINDS):
            time.sleep(0.2)
        return latency_in(cluster.events(mark, PACED_NAMESPACE))


def latency_in(events: list[dict[str, Any]]) -> Latency:
    """Return the waiting times of the WebApps in these events."""
    stored: dict[str, dict[str, float]] = {}
    for event in events:
        if _what(event) in ("create webapps", "patch deployments", "patch services"):
            stored.setdefault(event["objectRef"]["name"], {}).setdefault(_what(event), _time(event))
    waits = [(max(times.values()) - times["create webapps"]) * 1000 for times in stored.values()]
    cuts = statistics.quantiles(waits, n=100, method="inclusive")
    return Latency(*(round(each, 1) for each in (cuts[49], cuts[98], max(waits))))


def restart(cluster: Cluster, count: int) -> Restarted:
    """Start a controller with up-to-date WebApps, and wait until it has reconciled all of them."""
    namespace = _namespace(count)
    before, mark = cluster.versions(namespace), cluster.plane.audit_mark()
    with cluster.controller(namespace) as controller:
        progress(f"restart beside {len(before)} objects")
        resident, reconciles = 0.0, 0

        def is_done() -> bool:
            nonlocal resident, reconciles
            resident = megabytes(controller.pid)  # before a scrape, which itself uses memory
            reconciles = controller.reconciles()
            return reconciles >= count

        cpu = settled(controller.pid, is_done=is_done, quiet_cpu=LOOK_UPS_CPU)
    after, events = cluster.versions(namespace), cluster.events(mark, namespace)
    ours = [each["verb"] for each in events if each["userAgent"] == AGENT]
    return Restarted(
        objects=len(before),
        reconciles=reconciles,
        cpu=round(cpu, 2),
        resident=round(resident, 1),
        writes=sum(verb in WRITES for verb in ours),
        others=sum(verb not in {*WRITES, "list", "watch"} for verb in ours),
        changed=sum(before.get(key) != after.get(key) for key in before | after),
    )


def _namespace(count: int) -> str:
    return f"webapps-{count}"


def _what(event: dict[str, Any]) -> str:
    about = event["objectRef"]
    return f"{event['verb']} {about['resource']}" + (
        f"/{about['subresource']}" if "subresource" in about else ""
    )


def _time(event: dict[str, Any]) -> float:
    """Return the time of the response to a request."""
    return datetime.fromisoformat(event["stageTimestamp"]).timestamp()
