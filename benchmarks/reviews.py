"""`python -m benchmarks.reviews`: processor time of one review, served by the real webhook over TLS."""

import asyncio
import socket
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import uvloop

from benchmarks.measured import cpu_seconds, progress
from certs import issue_ca, issue_serving
from gatewright.commands.certs import write_pairs
from gatewright.terminal import console, table
from webhook.harness.reviews import Admission, review

ROUNDS, REVIEWS, CONNECTIONS = 5, 1000, 8
READY_WITHIN = 20.0
ROOT = Path(__file__).parents[1]
LIMITS = {"limits": {"cpu": "500m", "memory": "512Mi"}, "requests": {"cpu": "100m", "memory": "128Mi"}}


@dataclass(frozen=True, slots=True)
class Cost:
    """What one round cost: microseconds of the server's processor time a review, and latencies in milliseconds."""

    cpu: float
    p50: float
    p99: float


def deployment(image: str, replicas: int, resources: dict[str, Any]) -> dict[str, Any]:
    """Return a Deployment of about 6 KB with three containers."""
    env = [{"name": f"VARIABLE_{number}", "value": "x" * 24} for number in range(28)]
    containers = [{"name": f"app-{number}", "image": image, "env": env, "resources": resources} for number in range(3)]
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "shop", "namespace": "production", "labels": {"app": "shop"}},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "shop"}},
            "template": {"metadata": {"labels": {"app": "shop"}}, "spec": {"containers": containers}},
        },
    }


WEBAPP = {
    "apiVersion": "example.com/v1",
    "kind": "WebApp",
    "metadata": {"name": "shop", "namespace": "production"},
    "spec": {"replicas": 3, "image": "registry.company.com/shop:1", "resources": LIMITS},
}
CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "shop"}, "data": {"a": "x" * 6000}}
GOOD = deployment("registry.company.com/shop:1", 3, LIMITS)
REQUESTS = {
    "allow": ("/validate", GOOD),
    "deny (7 violations)": ("/validate", deployment("nginx:1.21", 11, {})),
    "mutate a WebApp": ("/mutate", WEBAPP),
    "a WebApp, and what is made of it": ("/validate", WEBAPP),
    "no policy looks at it": ("/validate", CONFIG_MAP),
}


def main() -> None:
    """Start both servers, ask them in turns, and print what each review cost."""
    with tempfile.TemporaryDirectory() as name:
        directory, now = Path(name), datetime.now(UTC)
        ca = issue_ca("benchmark", now)
        write_pairs(directory, ca, issue_serving(ca, [], ["127.0.0.1"], now))
        trust = ssl.create_default_context(cadata=ca.certificate.decode())
        floor_port, ours_port, metrics, health = (free_port() for _ in range(4))
        ours = [
            *(
                sys.executable,
                "-m",
                "gatewright",
                "webhook",
                "--no-cluster",
                "--policies",
                str(ROOT / "config/policies/production.yaml"),
            ),
            *("--tls-cert", str(directory / "tls.crt"), "--tls-key", str(directory / "tls.key")),
            *("--listen", f"127.0.0.1:{ours_port}", "--metrics-listen", f"127.0.0.1:{metrics}"),
            *("--health-listen", f"127.0.0.1:{health}"),
        ]
        floor = [sys.executable, "-m", "benchmarks.floor", name, str(floor_port)]
        with running(floor, floor_port) as floor_pid, running(ours, ours_port) as ours_pid:
            uvloop.run(compare(trust, (floor_pid, floor_port), (ours_pid, ours_port)))


async def compare(trust: ssl.SSLContext, floor: tuple[int, int], ours: tuple[int, int]) -> None:
    """Ask both servers for each request in interleaved rounds, and print the medians."""
    out = console()
    rows = []
    for title, (path, object) in REQUESTS.items():
        body = review(Admission(object=object, namespace="production"))
        least, cost = [], []
        for number in range(ROUNDS):
            progress(f"{title}: round {number + 1} of {ROUNDS}")
            least.append(await ask(trust, *floor, path, body))
            cost.append(await ask(trust, *ours, path, body))
        progress("")
        rows.append(_row(title, len(body), _median(least), _median(cost)))
    out.print(table(rows, ("REVIEW", "BYTES", "CPU µs", "FLOOR µs", "RATIO", "p50 ms", "p99 ms")))
    out.print(
        f"{CONNECTIONS} connections, medians of {ROUNDS} rounds of {REVIEWS}; floor: aiohttp over TLS, no decision"
    )


async def ask(trust: ssl.SSLContext, pid: int, port: int, path: str, body: bytes) -> Cost:
    """Send REVIEWS reviews over CONNECTIONS connections."""
    latencies: list[float] = []
    headers = {"Content-Type": "application/json"}
    connector = aiohttp.TCPConnector(ssl=trust, limit=CONNECTIONS)
    async with aiohttp.ClientSession(f"https://127.0.0.1:{port}", connector=connector) as session:

        async def one_connection() -> None:
            for _ in range(REVIEWS // CONNECTIONS):
                started = time.perf_counter()
                async with session.post(path, data=body, headers=headers) as response:
                    response.raise_for_status()
                    await response.read()
                latencies.append((time.perf_counter() - started) * 1000)

        before = cpu_seconds(pid)
        async with asyncio.timeout(120), asyncio.TaskGroup() as group:
            for _ in range(CONNECTIONS):
                group.create_task(one_connection())
        used = cpu_seconds(pid) - before
    cuts = statistics.quantiles(latencies, n=100)
    return Cost(used / len(latencies) * 1e6, cuts[49], cuts[98])


def _median(costs: list[Cost]) -> Cost:
    return Cost(*(statistics.median(getattr(each, field) for each in costs) for field in ("cpu", "p50", "p99")))


def _row(title: str, size: int, floor: Cost, ours: Cost) -> tuple[str, ...]:
    ratio = f"{ours.cpu / floor.cpu:.1f}"
    return title, str(size), f"{ours.cpu:.0f}", f"{floor.cpu:.0f}", ratio, f"{ours.p50:.1f}", f"{ours.p99:.1f}"


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def running(command: list[str], port: int) -> Iterator[int]:
    """Run a server while the context lasts; yields its process id once it listens."""
    process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL)  # noqa: S603  our own commands
    try:
        deadline = time.monotonic() + READY_WITHIN
        while True:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            if process.poll() is not None or time.monotonic() > deadline:
                sys.exit(f"{' '.join(command)}: does not listen")
            time.sleep(0.05)
        yield process.pid
    finally:
        process.kill()
        process.wait()


if __name__ == "__main__":
    main()
