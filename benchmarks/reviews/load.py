"""The load: a small Go client on a separate core, and the server's cost of each round."""

import json
import statistics
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measured import cpu_seconds
from benchmarks.reviews.servers import Server, go_program, on_core


@dataclass(frozen=True, slots=True)
class Cost:
    """One round: CPU time per request in the server (us), latency (ms), requests per second."""

    cpu: float
    p50: float
    p99: float
    slowest: float
    rate: float
    errors: int


class Load:
    """A connected client that waits for its start signal."""

    def __init__(
        self,
        servers: Sequence[Server],
        body: Path,
        paths: str,
        *,
        core: int | None = 1,
        **options: float,
    ) -> None:
        """Connect the client; `options` are connections, requests and rate.

        Several servers share the connections, as replicas behind a Service do.
        """
        urls, trust = ",".join(server.url for server in servers), servers[0].trust
        flags = {"url": urls, "trust": trust, "body": body, "paths": paths, **options}
        command = [str(go_program("load")), *(f"-{name}={value}" for name, value in flags.items())]
        self._process = subprocess.Popen(  # noqa: S603
            on_core(core, command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        if self._process.stdout.readline() != "ready\n":
            raise SystemExit(f"{servers[0].name}: the client could not connect")
        self._servers = servers
        self._before = 0.0

    def start(self) -> "Load":
        """Start the load."""
        assert self._process.stdin is not None
        self._before = self._used()
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return self

    def result(self) -> Cost:
        """Wait for the end of the load."""
        output, _ = self._process.communicate()
        used = self._used() - self._before
        found = json.loads(output)
        latencies = found["latencies"]
        cuts = statistics.quantiles(latencies, n=100, method="inclusive")
        count = len(latencies)
        return Cost(
            used / count * 1e6,
            cuts[49],
            cuts[98],
            max(latencies),
            count / found["seconds"],
            int(found["errors"]),
        )

    def _used(self) -> float:
        return sum(cpu_seconds(server.pid) for server in self._servers)
