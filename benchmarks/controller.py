"""`python -m benchmarks.controller`: what WebApps cost the real controller, beside floors measured in the same run.

The controller is `gatewright controller` as it is installed: all kinds, a Lease, log lines. Its processor time is the
kernel's; requests and latencies are from the API server's audit log. The rows "alone" have etcd and an API server and
nothing else, so nobody changes the Deployments: WebApps have converged when both children and the status are there.
"whole" is the whole control plane with simulated nodes, where every WebApp runs and has its status written twice.

The floor is a loop in Python (`benchmarks.writes`) that sends the same objects and statuses and does nothing else; of
memory, a process that has imported the controller's modules.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.measured import progress
from benchmarks.webapps import (
    PACE,
    ROOT,
    Cluster,
    Converged,
    Latency,
    Restarted,
    cluster,
    converge,
    latency,
    populate,
    restart,
)
from gatewright.terminal import console, table

ALONE = ("etcd", "kube-apiserver")
IMPORTS = """\
import pathlib, gatewright.commands.controller
from controller.reconcilers import planned_kinds
planned_kinds()
status = pathlib.Path("/proc/self/status").read_text()
print(int(status.partition("VmRSS:")[2].split()[0]) / 1024)
"""


@dataclass(frozen=True)
class Results:
    """All that was measured."""

    converged: dict[str, Converged]
    latency: Latency
    restarted: Restarted
    passes: dict[str, int]
    resident_of_imports: float


@dataclass(frozen=True)
class Bar:
    """What should hold on a machine that does nothing else."""

    what: str
    found: float
    bar: float
    at_least: bool = False

    @property
    def holds(self) -> bool:
        """Whether it does."""
        return self.found >= self.bar if self.at_least else self.found <= self.bar


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.controller", description="What WebApps cost.")
    parser.add_argument("--webapps", type=int, nargs="+", default=[1000, 5000], help="how many converge, row by row")
    parser.add_argument("--whole", type=int, default=1000, help="how many on a whole control plane; 0 leaves it out")
    parser.add_argument("--restart", type=int, default=3334, help="WebApps that a restart finds: 3 objects each")
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table")
    asked = parser.parse_args()
    results = measure(asked.webapps, asked.whole, asked.restart)
    progress("")
    if asked.output == "json":
        met = [asdict(each) | {"holds": each.holds} for each in bars(results)]
        print(json.dumps(asdict(results) | {"bars": met}, indent=2))
    else:
        show(results)


def measure(counts: list[int], whole: int, restarted: int) -> Results:
    """Measure everything, one after the other."""
    converged: dict[str, Converged] = {}
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        with cluster(directory / "alone", ALONE) as alone:
            for count in counts:
                converged[f"{count} alone"] = converge(alone, count)
            paced = latency(alone)
            if restarted not in counts:
                populate(alone, restarted)
            again = restart(alone, f"webapps-{restarted}")
            rates = passes(alone, f"webapps-{min(counts)}")
        if whole:
            with cluster(directory / "whole", None) as complete:
                converged[f"{whole} whole"] = converge(complete, whole)
    imports = float(_python("-c", IMPORTS))
    return Results(converged, paced, again, rates, round(imports, 1))


def passes(cluster: Cluster, namespace: str) -> dict[str, int]:
    """Return how many reconciles a second find nothing to do."""
    progress("reconciles that find nothing to do")
    return dict(json.loads(_python("-m", "benchmarks.passes", str(cluster.plane.kubeconfig), namespace)))


def bars(results: Results) -> Iterator[Bar]:
    """Yield what should hold."""
    if row := results.converged.get("1000 alone"):
        yield Bar("processor seconds for 1,000 WebApps", row.cpu, 2.5)
    yield Bar("MB in memory, idle beside no object", results.restarted.resident_of_start, 70)
    yield Bar(f"processor seconds of a restart, {results.restarted.objects} objects", results.restarted.cpu, 1.5)
    yield Bar("objects changed by a restart", results.restarted.changed, 0)
    yield Bar("writes of a restart", results.restarted.writes, 0)
    yield Bar("reconciles a second that find nothing to do", results.passes["reconciles"], 5000, at_least=True)
    yield Bar("ms from a WebApp to its children, p99, one after the other", results.latency.p99, 100)


def show(results: Results) -> None:
    """Print tables."""
    out = console()
    rows = [_row(name, each) for name, each in results.converged.items()]
    out.print(table(rows, ("WEBAPPS", "SECONDS", "FLOOR", "CPU s", "FLOOR", "RATIO", "CPU ms EACH", "MB")))
    for name, each in results.converged.items():
        out.print(f"requests, {name}: " + ", ".join(f"{count} {what}" for what, count in each.requests.items()))
    wait, again = results.latency, results.restarted
    out.print(f"from a WebApp to its children, {1 / PACE:.0f} a second: {_told(wait)}")
    for name, each in results.converged.items():
        out.print(f"from a WebApp to its children, {name}, stored all at once: {_told(each.latency)}")
    out.print(
        f"restart beside {again.objects} objects: {again.cpu} CPU s ({again.cpu_of_start} beside none),"
        f" {again.resident} MB ({again.resident_of_start} beside none), {again.reconciles} reconciles"
    )
    out.print(f"bare imports of the controller: {results.resident_of_imports} MB")
    alone, whole = results.passes["reconciles"], results.passes["passes"]
    out.print(f"nothing to do: {alone} reconciles/s; {whole}/s with queue, metrics and log lines")
    found = [(each.what, f"{each.found:g}", _wanted(each), "yes" if each.holds else "NO") for each in bars(results)]
    out.print(table(found, ("BAR", "FOUND", "WANTED", "HOLDS")))


def _row(name: str, found: Converged) -> tuple[str, ...]:
    return (
        name,
        f"{found.seconds:.1f}",
        f"{found.floor_seconds:.1f}",
        f"{found.cpu:.2f}",
        f"{found.floor_cpu:.2f}",
        f"{found.cpu / found.floor_cpu:.1f}",
        f"{found.cpu / found.webapps * 1000:.2f}",
        f"{found.resident:.0f}",
    )


def _told(wait: Latency) -> str:
    return f"median {wait.median:g} ms, p99 {wait.p99:g} ms, max {wait.max:g} ms"


def _wanted(bar: Bar) -> str:
    return f"{'>=' if bar.at_least else '<='} {bar.bar:g}"


def _python(*arguments: str) -> str:
    """Return what Python prints."""
    command = [sys.executable, *arguments]
    pipe, nowhere = subprocess.PIPE, subprocess.DEVNULL
    return subprocess.run(command, cwd=ROOT, stdout=pipe, stderr=nowhere, text=True, check=True).stdout  # noqa: S603


if __name__ == "__main__":
    main()
