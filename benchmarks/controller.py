"""`python -m benchmarks.controller`: the cost of WebApps in the real controller.

The controller is `gatewright controller` as in an installation: all kinds, a Lease, log lines. Its
processor time is the kernel's; requests and latencies are from the API server's audit log. The rows
"alone" have etcd and an API server and nothing else, so Deployments do not change: a WebApp has
converged when both children and the status exist. "whole" is the whole control plane with simulated
nodes, where every WebApp runs and has its status written twice.

The floor is a loop (`benchmarks.writes`) that only sends the same objects and statuses through the
controller's own HTTP client: three writes per WebApp, and as many in parallel as the controller.
The floor of memory is a process that has imported the controller's modules. Each row is printed as
soon as it is measured.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from argparse import Namespace
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.cluster import ROOT, Cluster, cluster
from benchmarks.idle import Idle, alone, registering
from benchmarks.measured import progress
from benchmarks.webapps import (
    PACE,
    PACED_NAMESPACE,
    Converged,
    Floor,
    Latency,
    Restarted,
    converge,
    floor,
    latency,
    populate,
    restart,
)
from gatewright.console.terminal import table

ALONE = ("etcd", "kube-apiserver")


@dataclass(frozen=True)
class Passes:
    """No-op reconciles per second: alone, and with queue, metrics and logs."""

    reconciles: int
    passes: int


@dataclass(frozen=True)
class Throughput:
    """Writes per second by five workers on an API server that answers in 4 ms."""

    writes: int


Row = Idle | Floor | Converged | Latency | Restarted | Passes | Throughput


@dataclass(frozen=True)
class Bar:
    """Targets on an otherwise idle machine."""

    what: str
    found: float
    bar: float
    at_least: bool = False

    @property
    def holds(self) -> bool:
        """Whether the target is met."""
        return self.found >= self.bar if self.at_least else self.found <= self.bar


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.controller", description="What WebApps cost."
    )
    parser.add_argument(
        "--webapps", type=int, nargs="*", default=[1000, 5000], help="how many converge, row by row"
    )
    parser.add_argument(
        "--whole", type=int, default=1000, help="how many on a whole control plane; 0 leaves it out"
    )
    parser.add_argument(
        "--restart", type=int, default=3334, help="WebApps that a restart finds: 3 objects each"
    )
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table")
    asked = parser.parse_args()
    rows = []
    for row in measure(asked):
        rows.append(row)
        progress("")
        if asked.output == "table":
            print(row_text(row), flush=True)
    if asked.output == "json":
        met = [asdict(each) | {"holds": each.holds} for each in bars(rows)]
        found = [{"row": type(row).__name__.lower()} | asdict(row) for row in rows]
        print(json.dumps({"rows": found, "bars": met}, indent=2))
    else:
        show(rows)


def measure(asked: Namespace) -> Iterator[Row]:
    """Yield the measurements, one after the other."""
    fewest = min([asked.restart, *asked.webapps])
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        with cluster(directory / "alone", ALONE) as plane:
            yield alone(plane)
            yield registering(plane)
            yield (least := floor(plane, min(1000, fewest)))
            yield latency(plane)  # first, while the API server has few objects
            for count in asked.webapps:
                yield converge(plane, "alone", count, least)
            if asked.restart not in asked.webapps:
                populate(plane, asked.restart)
            yield restart(plane, asked.restart)
            yield passes(plane, PACED_NAMESPACE)
        yield Throughput(**_printed("writes on a slow API server", "benchmarks.throughput"))
        if asked.whole:
            with cluster(directory / "whole", None) as plane:
                yield converge(plane, "whole", asked.whole, least)


def passes(cluster: Cluster, namespace: str) -> Passes:
    """Return the number of no-op reconciles per second."""
    what = "reconciles that find nothing to do"
    return Passes(**_printed(what, "benchmarks.passes", str(cluster.plane.kubeconfig), namespace))


def _printed(what: str, *module: str) -> dict[str, int]:
    """Run a module of benchmarks in a separate process and return its output."""
    progress(what)
    command, pipe, nowhere = [sys.executable, "-m", *module], subprocess.PIPE, subprocess.DEVNULL
    printed = subprocess.run(  # noqa: S603
        command, cwd=ROOT, stdout=pipe, stderr=nowhere, text=True, check=True
    ).stdout
    return dict(json.loads(printed))


def bars(rows: Sequence[Row]) -> Iterator[Bar]:
    """Yield the targets and whether they are met."""
    for row in rows:
        match row:
            case Converged(where="alone", webapps=1000):
                yield Bar("processor seconds for 1,000 WebApps", row.cpu, 5)
            case Idle(shape="as the chart runs it"):
                yield Bar("MB in memory, idle as the chart runs it", row.resident, 75)
            case Restarted():
                yield Bar(f"writes of a restart, {row.objects} objects", row.writes, 0)
                yield Bar("objects changed by a restart", row.changed, 0)
                yield Bar(
                    "requests of a restart beside lists, watches and the Lease", row.others, 0
                )
            case Latency():
                yield Bar("ms from a WebApp to its children, p99, 20 a second", row.p99, 150)
            case Throughput():
                yield Bar(
                    "writes a second where an answer takes 4 ms", row.writes, 300, at_least=True
                )


def row_text(row: Row) -> str:
    """Return a row as text."""
    match row:
        case Idle():
            imports = f"of which imports {row.cpu_of_imports} and {row.resident_of_imports}"
            return f"idle, {row.shape}: {row.cpu} CPU s to start, {row.resident} MB, {imports}"
        case Floor():
            return f"floor for {row.webapps} WebApps: {row.seconds} s, {row.cpu} CPU s"
        case Converged():
            requests = ", ".join(f"{count} {what}" for what, count in row.requests.items())
            return (
                f"{row.webapps} WebApps, {row.where}: {row.seconds} s (floor "
                f"{row.floor_seconds}), {row.cpu} CPU s"
                f" (floor {row.floor_cpu}, {row.cpu / row.floor_cpu:.1f} times it; "
                f"{row.cpu / row.webapps * 1000:.2f}"
                f" CPU ms each), {row.resident} MB\n  to their children: {_waits(row.latency)}\n  "
                f"requests: {requests}"
            )
        case Latency():
            return f"from a WebApp to its children, {1 / PACE:.0f} a second: {_waits(row)}"
        case Restarted():
            reconciles = (
                f"{row.reconciles} reconciles, {row.writes} writes, {row.others} other, "
                f"{row.changed} changed"
            )
            return (
                f"restart beside {row.objects} objects: {row.cpu} CPU s, {row.resident} MB, "
                f"{reconciles}"
            )
        case Passes():
            return (
                f"nothing to do: {row.reconciles} reconciles/s; {row.passes}/s with queue, "
                "metrics and log lines"
            )
        case Throughput():
            return f"an API server that answers in 4 ms: {row.writes} writes/s"


def show(rows: Sequence[Row]) -> None:
    """Print whether the targets are met."""
    found = [
        (each.what, f"{each.found:g}", _wanted(each), "yes" if each.holds else "NO")
        for each in bars(rows)
    ]
    table(found, ("BAR", "FOUND", "WANTED", "HOLDS"))


def _waits(wait: Latency) -> str:
    return f"median {wait.median:g} ms, p99 {wait.p99:g} ms, max {wait.max:g} ms"


def _wanted(bar: Bar) -> str:
    return f"{'>=' if bar.at_least else '<='} {bar.bar:g}"


if __name__ == "__main__":
    main()
