"""The sections of measurements, as plain values for JSON."""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks.measured import megabytes, progress
from benchmarks.reviews import verdicts
from benchmarks.reviews.bodies import Body
from benchmarks.reviews.load import Cost, Load
from benchmarks.reviews.others import reviews, write_sets
from benchmarks.reviews.policy_sets import MATCHING, MORE, write
from benchmarks.reviews.servers import FLOOR, GATEWRIGHT, HANDLER, PARTIAL, TYPED, Bench, Server

CONNECTIONS, CROWD = 8, 200
REPLICAS = (1, 2, 3)
LARGE = 100_000  # bytes from which a body is sent a tenth as often
LOADED = (10, 100, 1_000, 10_000)
STARTS = 5
NEIGHBOUR_SECONDS, NEIGHBOUR_RATE, HOSTILE_RATE = 10, 100, 5
Found = dict[str, Any]


class Sections:
    """The servers of all sections, and the request bodies."""

    def __init__(
        self, bench: Bench, stack: ExitStack, bodies: Mapping[str, Body], rounds: int, reviews: int
    ) -> None:
        """Start the servers and write the bodies to files."""
        self._bench, self._bodies, self._rounds, self._reviews = bench, bodies, rounds, reviews
        self._policies = write(bench.directory / "policies")
        progress("starting the servers")
        self.servers = [
            stack.enter_context(bench.gatewright(self._policies)),
            stack.enter_context(bench.floor()),
            stack.enter_context(bench.go(TYPED)),
            stack.enter_context(bench.go(PARTIAL)),
            stack.enter_context(bench.go(HANDLER)),
        ]
        self._files: dict[str, Path] = {}
        for name, body in bodies.items():
            self._files[name] = bench.directory / f"{name}.json"
            self._files[name].write_bytes(body.review)

    def memory(self, what: str = "VmRSS") -> dict[str, float]:
        """Return the memory of each server in megabytes, now or its peak (VmHWM)."""
        return {server.name: round(megabytes(server.pid, what), 1) for server in self.servers}

    def bodies(self, names: Sequence[str]) -> Iterator[tuple[str, Found]]:
        """Yield the cost of each body on each server, after checking that their verdicts agree."""
        for name in names:
            body = self._bodies[name]
            with ExitStack() as stack:
                servers = self.servers
                if name == "labels":
                    kubeconfig = stack.enter_context(self._bench.cluster())
                    asked = self._bench.gatewright(self._policies, "--kubeconfig", str(kubeconfig))
                    servers = [stack.enter_context(asked), *servers[1:]]
                self._compare(servers, body)
                costs = self._interleaved(servers, name, f"{name}:")
            yield (
                name,
                {"about": body.about, "bytes": len(body.review), "bar": body.bar, "servers": costs},
            )

    def policies(self) -> Found:
        """Return the cost of additional policies: some that match, and many that do not."""
        progress("starting servers with more policies")
        with ExitStack() as stack:
            sets = {
                f"{MATCHING}": self._policies,
                "matching": write(self._bench.directory / "more", matching=True),
            }
            sets |= {
                str(count): write(self._bench.directory / f"of-{count}", loaded=count)
                for count in LOADED
            }
            servers = {
                name: stack.enter_context(self._bench.gatewright(path))
                for name, path in sets.items()
            }
            for server in servers.values():
                self._compare([server], self._bodies["allow"])
            rounds: dict[str, list[Cost]] = {name: [] for name in servers}
            for number in range(self._rounds):
                for name, server in servers.items():
                    progress(f"policies: round {number + 1} of {self._rounds}")
                    rounds[name].append(self._cost(server, "allow"))
            few = [cost.cpu for cost in rounds[str(MATCHING)]]
            more = [
                (one.cpu - less) / len(MORE)
                for one, less in zip(rounds["matching"], few, strict=True)
            ]
            return {
                "one more": round(statistics.median(more), 1),
                "loaded": {
                    name: {
                        "cpu": round(statistics.median(each.cpu for each in costs), 1),
                        "ratio": _ratio([each.cpu for each in costs], few),
                        "started": round(servers[name].started, 2),
                        "megabytes": round(megabytes(servers[name].pid), 1),
                    }
                    for name, costs in rounds.items()
                },
            }

    def crowd(self) -> Found:
        """Return latencies with many concurrent connections."""
        servers = [server for server in self.servers if server.name != FLOOR]
        return self._interleaved(servers, "allow", f"{CROWD} connections:", CROWD)

    def neighbour(self) -> Found:
        """Return the latencies of one client while another sends thousands of containers."""
        found = {}
        for server in self.servers:
            if server.name == FLOOR:
                continue
            progress(f"neighbour: {server.name}")
            # It has enough connections to keep the rate even if responses are slow.
            many = NEIGHBOUR_SECONDS * HOSTILE_RATE
            hostile = self._load(
                server,
                "tiny",
                "/mutate,/validate",
                connections=many // 2,
                requests=many,
                rate=HOSTILE_RATE,
            )
            count = NEIGHBOUR_SECONDS * NEIGHBOUR_RATE
            other = self._load(
                server, "allow", "/validate", connections=4, requests=count, rate=NEIGHBOUR_RATE
            )
            hostile.start()
            cost, theirs = other.start().result(), hostile.result()
            found[server.name] = {
                **_latencies([cost]),
                "hostile p50": round(theirs.p50, 1),
                "hostile": theirs.errors,
            }
        return found

    def others(self) -> Found:
        """Return the cost of reviews that the Go webhooks do not answer.

        `ratio` is the processor time as a share of typed Go's for the allowed Deployment.
        """
        asked, sets = reviews(), write_sets(self._bench.directory)
        (typed,) = (server for server in self.servers if server.name == TYPED)
        rounds: dict[str, list[Cost]] = {name: [] for name in (TYPED, *asked)}
        with ExitStack() as stack:
            servers = {
                name: stack.enter_context(self._bench.gatewright(path, decides=False))
                for name, path in sets.items()
            }
            for name, each in asked.items():
                self._files[name] = self._bench.directory / f"{name}.json"
                self._files[name].write_bytes(each.body)
            for number in range(self._rounds):
                progress(f"others: round {number + 1} of {self._rounds}")
                rounds[TYPED].append(self._cost(typed, "allow"))
                for name, each in asked.items():
                    load = self._load(
                        servers[each.policies],
                        name,
                        each.path,
                        connections=CONNECTIONS,
                        requests=self._reviews,
                    )
                    rounds[name].append(load.start().result())
        beside = [cost.cpu for cost in rounds[TYPED]]
        return {
            name: {
                "about": each.about,
                "cpu": round(statistics.median(cost.cpu for cost in rounds[name]), 1),
                "ratio": _ratio([cost.cpu for cost in rounds[name]], beside),
                **_latencies(rounds[name]),
            }
            for name, each in asked.items()
        }

    def replicas(self) -> Found:
        """Return the throughput of replicas on both cores, and of typed Go on both.

        The client shares these cores.
        """
        rounds: dict[str, list[Cost]] = {}
        with ExitStack() as stack:
            ours = [
                stack.enter_context(self._bench.gatewright(self._policies, core=None))
                for _ in range(max(REPLICAS))
            ]
            typed = stack.enter_context(self._bench.go(TYPED, core=None))
            groups = {f"{GATEWRIGHT}, replicas: {count}": ours[:count] for count in REPLICAS}
            groups |= {f"{TYPED}, two cores": [typed]}
            for number in range(self._rounds):
                progress(f"replicas: round {number + 1} of {self._rounds}")
                for name, servers in groups.items():
                    load = Load(
                        servers,
                        self._files["allow"],
                        "/validate",
                        core=None,
                        connections=2 * CONNECTIONS,
                        requests=2 * self._reviews,
                    )
                    rounds.setdefault(name, []).append(load.start().result())
        beside = [cost.rate for cost in rounds[f"{TYPED}, two cores"]]
        return {
            name: {"ratio": _ratio([cost.rate for cost in costs], beside), **_latencies(costs)}
            for name, costs in rounds.items()
        }

    def starts(self) -> dict[str, float]:
        """Return the median seconds from the start of a process to its first correct response."""
        found = {}
        for name in (GATEWRIGHT, TYPED, PARTIAL, HANDLER):
            times = []
            for number in range(STARTS):
                progress(f"start of {name}: {number + 1} of {STARTS}")
                running = (
                    self._bench.gatewright(self._policies)
                    if name == GATEWRIGHT
                    else self._bench.go(name)
                )
                with running as server:
                    times.append(server.started)
            found[name] = round(statistics.median(times), 3)
        return found

    def _compare(self, servers: Sequence[Server], body: Body) -> None:
        """Abort the benchmark if a server's verdict differs from the expected one."""
        objects = []
        for server in servers:
            if server.name != FLOOR:
                response = verdicts.ask(server.port, self._bench.context, body)
                if fault := verdicts.fault(response, body):
                    raise SystemExit(f"{server.name} decides otherwise: {fault}")
                objects.append(verdicts.patched(response, body))
        if any(each != objects[0] for each in objects):
            raise SystemExit(f"{body.name}: the patched objects differ")

    def _interleaved(
        self, servers: Sequence[Server], name: str, title: str, connections: int = CONNECTIONS
    ) -> Found:
        """Return the medians of each server in interleaved rounds.

        `ratio` is the processor time as a share of typed Go's.
        """
        rounds: dict[str, list[Cost]] = {server.name: [] for server in servers}
        for number in range(self._rounds):
            for server in servers:
                progress(f"{title} round {number + 1} of {self._rounds}")
                rounds[server.name].append(self._cost(server, name, connections))
        typed = [cost.cpu for cost in rounds[TYPED]]
        return {
            name: {
                "cpu": round(statistics.median(each.cpu for each in costs), 1),
                "ratio": _ratio([each.cpu for each in costs], typed),
                **_latencies(costs),
            }
            for name, costs in rounds.items()
        }

    def _cost(self, server: Server, name: str, connections: int = CONNECTIONS) -> Cost:
        body = self._bodies[name]
        count = (
            self._reviews // 10
            if len(body.review) > LARGE
            else max(self._reviews, 20 * connections)
        )
        return (
            self._load(server, name, body.path, connections=connections, requests=count)
            .start()
            .result()
        )

    def _load(self, server: Server, name: str, paths: str, **options: float) -> Load:
        return Load([server], self._files[name], paths, **options)


def _ratio(values: Sequence[float], beside: Sequence[float]) -> float:
    """Return the median of the ratios of each round, since a disturbance affects both servers."""
    return round(
        statistics.median(one / other for one, other in zip(values, beside, strict=True)), 2
    )


def _latencies(costs: Sequence[Cost]) -> Found:
    return {
        **{
            name: round(statistics.median(getattr(each, name) for each in costs), 2)
            for name in ("p50", "p99")
        },
        "slowest": round(max(each.slowest for each in costs), 1),
        "rate": round(statistics.median(each.rate for each in costs)),
        "errors": sum(each.errors for each in costs),
    }
