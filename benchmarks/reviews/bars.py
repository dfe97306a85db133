"""Targets, and the tables of a run for a page of docs."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from benchmarks.reviews.policy_sets import MATCHING, MORE
from benchmarks.reviews.sections import CROWD
from benchmarks.reviews.servers import FLOOR, GATEWRIGHT, HANDLER, PARTIAL, TYPED

CROWD_BAR, MORE_BAR, LOADED_BAR, NEIGHBOUR_BAR, MEMORY_BAR, START_BAR = (
    0.5,
    5.0,
    1.2,
    40.0,
    75.0,
    0.8,
)
LATENCIES = {
    "crowd": f"{CROWD} connections",
    "neighbour": "Beside 4,300 containers, five times a second",
}


@dataclass(frozen=True, slots=True)
class Bar:
    """A figure, and its upper limit."""

    what: str
    found: float
    most: float
    unit: str = ""

    @property
    def holds(self) -> bool:
        """Whether the figure is within its limit."""
        return self.found <= self.most


def bars(run: dict[str, Any]) -> Iterator[Bar]:
    """Yield the figures of a run that have limits."""
    for body in run.get("bodies", {}).values():
        if body["bar"] is not None:
            ratio = body["servers"][GATEWRIGHT]["ratio"]
            yield Bar(f"{body['about']}: processor time, of typed Go's", ratio, body["bar"], "x")
    if "policies" in run:
        yield Bar("one more policy that matches", run["policies"]["one more"], MORE_BAR, " µs")
        most = run["policies"]["loaded"]["10000"]["ratio"]
        yield Bar("10,000 loaded policies: processor time, of 4 policies'", most, LOADED_BAR, "x")
    if "neighbour" in run:
        found = run["neighbour"][GATEWRIGHT]
        yield Bar(
            "p99 beside a client that sends 4,300 containers", found["p99"], NEIGHBOUR_BAR, " ms"
        )
        yield Bar("errors beside that client", found["errors"], 0)
    if "crowd" in run:
        ratio = run["crowd"][GATEWRIGHT]["p99"] / run["crowd"][TYPED]["p99"]
        yield Bar(f"p99 with {CROWD} connections, of typed Go's", round(ratio, 2), CROWD_BAR, "x")
    if "memory" in run:
        yield Bar("memory after all reviews", run["memory"]["after"][GATEWRIGHT], MEMORY_BAR, " MB")
    if "starts" in run:
        yield Bar("start to first right answer", run["starts"][GATEWRIGHT], START_BAR, " s")


def tables(run: dict[str, Any]) -> Iterator[tuple[str, tuple[str, ...], list[tuple[str, ...]]]]:
    """Yield title, columns and rows of each table."""
    rows: list[tuple[str, ...]] = [
        (bar.what, f"{bar.found:g}{bar.unit}", f"{bar.most:g}{bar.unit}", _answer(bar))
        for bar in bars(run)
    ]
    yield "Bars", ("WHAT", "FOUND", "BAR", "MET"), rows
    if "bodies" in run:
        yield from _bodies(run["bodies"])
    if "others" in run:
        rows = [
            (
                each["about"],
                f"{each['cpu']:.0f}",
                f"{each['ratio']:.2f}x",
                f"{each['p50']:.1f} / {each['p99']:.1f}",
                str(each["errors"]),
            )
            for each in run["others"].values()
        ]
        yield (
            "Reviews that the Go webhooks do not answer",
            ("REVIEW", "CPU µs", "OF TYPED GO'S ALLOWED DEPLOYMENT", "p50 / p99 ms", "ERRORS"),
            rows,
        )
    if "replicas" in run:
        rows = [
            (
                who,
                f"{each['rate']:,}",
                f"{each['ratio']:.2f}x",
                f"{each['p50']:.1f} / {each['p99']:.1f}",
                str(each["errors"]),
            )
            for who, each in run["replicas"].items()
        ]
        yield (
            "Replicas on two cores, which the client shares",
            ("SERVER", "PER SECOND", "OF TYPED GO'S", "p50 / p99 ms", "ERRORS"),
            rows,
        )
    if "policies" in run:
        loaded = run["policies"]["loaded"].items()
        rows = [
            (
                f"{MATCHING} and {len(MORE)} more that match"
                if name == "matching"
                else f"{int(name):,}",
                f"{each['cpu']:.0f}",
                f"{each['ratio']:.2f}x",
                f"{each['megabytes']:.0f}",
                f"{each['started']:.1f}",
            )
            for name, each in loaded
        ]
        yield (
            "Policies loaded",
            ("POLICIES", "CPU µs", "OF 4 POLICIES'", "MEMORY MB", "START s"),
            rows,
        )
    for name, title in LATENCIES.items():
        if name in run:
            rows = [
                (
                    who,
                    f"{each['p50']:.1f}",
                    f"{each['p99']:.1f}",
                    f"{each['slowest']:.0f}",
                    str(each["errors"]),
                )
                for who, each in run[name].items()
            ]
            yield title, ("SERVER", "p50 ms", "p99 ms", "SLOWEST ms", "ERRORS"), rows
    if "starts" in run and "memory" in run:
        rows = [
            (
                who,
                f"{each:.2f}",
                *(f"{run['memory'][when][who]:.0f}" for when in ("before", "most", "after")),
            )
            for who, each in run["starts"].items()
        ]
        yield (
            "Start and memory",
            ("SERVER", "FIRST ANSWER s", "MEMORY MB", "AT MOST MB", "AFTER ALL MB"),
            rows,
        )


def _bodies(bodies: dict[str, Any]) -> Iterator[tuple[str, tuple[str, ...], list[tuple[str, ...]]]]:
    names = (GATEWRIGHT, FLOOR, TYPED, PARTIAL, HANDLER)
    rows = []
    for name, body in bodies.items():
        costs = body["servers"]
        cpu = [f"{costs[who]['cpu']:.0f}" for who in names]
        ratios = [f"{costs[who]['ratio']:.2f}x" for who in (GATEWRIGHT, FLOOR, PARTIAL)]
        rows.append((name, body["about"], f"{body['bytes']:,}", *cpu, *ratios))
    of_typed = ("OURS OF TYPED GO", "FLOOR OF TYPED GO", "PARTIAL OF TYPED GO")
    columns = (
        "BODY",
        "REVIEW",
        "BYTES",
        "OURS",
        "FLOOR",
        "TYPED GO",
        "PARTIAL GO",
        "CONTROLLER-RUNTIME",
        *of_typed,
    )
    yield "Processor time of a review, µs", columns, rows
    rows = []
    for name, body in bodies.items():
        ours, typed = body["servers"][GATEWRIGHT], body["servers"][TYPED]
        latencies = [f"{each['p50']:.1f} / {each['p99']:.1f}" for each in (ours, typed)]
        rows.append((name, *latencies, f"{ours['rate']:,}", f"{typed['rate']:,}"))
    columns = (
        "BODY",
        "OURS p50 / p99 ms",
        "TYPED GO p50 / p99 ms",
        "OURS PER SECOND",
        "TYPED GO PER SECOND",
    )
    yield "Latency and throughput, 8 connections", columns, rows


def _answer(bar: Bar) -> str:
    return "yes" if bar.holds else "NO"
