"""Many policies on a real API server: `python -m benchmarks.policies 100 1000 --sorts names`.

Policies of one sort are created, 16 at a time, then one is changed again and again, while reviews
go on beside them. The last one that was created is in force when the API server answers a dry run
by it. The processor time of a change is measured afterwards, without reviews, and without that of
an equal time before the changes: with thousands of policies, enforcement is measured all the time.
A sort is how policies select their namespaces. Beside each review, a control request of the same
size is sent that no policy judges, so that the API server calls no webhook: what it waits is the
API server's.
"""

import argparse
import asyncio
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from benchmarks.cluster import Cluster, Running, cluster
from benchmarks.idle import HOME, registering_processes
from benchmarks.measured import cpu_seconds, megabytes, progress
from benchmarks.stops import measured_stops
from kube.client import Client
from kube.credentials import load
from kube.errors import AlreadyExists, ApiError, ServerError
from kube.resource import JsonObject, Resource
from tests.controlplane.processes import free_ports
from webhook.server.cluster_policies import RESOURCES

CLUSTER_POLICY, TENANTS, EXCEPTION = RESOURCES
NAMESPACE = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
DEPLOYMENT = Resource("apps", "v1", "deployments", "Deployment")
CONTROL = Resource("apps", "v1", "daemonsets", "DaemonSet")  # no policy here judges it
SORTS = ("names", "globs", "keys", "values", "tenants", "exceptions")
AT_ONCE = 16
CHANGES = 40  # one by one, each when the one before is in force
CHANGE_EVERY = 0.5  # seconds; all changes take a multiple of the pause between measurements
QUIET = 200  # reviews before there are many policies
PAUSE = 0.025  # seconds after each review
IN_FORCE_WITHIN = 600.0
POD = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "a", "image": "a:1"}]}}
SPEC = {"selector": {"matchLabels": {"a": "b"}}, "template": POD, "replicas": 1}
COLUMNS = (
    ("policies", "policies"),
    ("process", "process"),
    ("CPU of each creation", "ms"),
    ("CPU of each change", "ms"),
    ("memory of each", "kB"),
    ("longest stop of the loop", "ms"),
    ("last one in force after", "s"),
    ("all statuses after", "s"),
    ("p99 of reviews, quiet", "ms"),
    ("p99 of control requests, quiet", "ms"),
    ("p99 of reviews beside", "ms"),
    ("p99 of control requests beside", "ms"),
    ("failed", ""),
)


@dataclass
class Reviews:
    """The times of creations (dry runs) of one resource, in milliseconds."""

    resource: Resource

    times: list[float] = field(default_factory=list)
    failed: int = 0

    @property
    def p99(self) -> float:
        """The time within which 99 of 100 are answered."""
        return statistics.quantiles(self.times, n=100)[-1]


def place_of(sort: str, number: int) -> tuple[str, dict[str, str]]:
    """Return the namespace, with its labels, that the policy of a sort and number selects."""
    name = {"globs": f"g{number}-a"}.get(sort, f"ns-{number}")
    return name, {f"k{number}": "x", "team": f"v{number}"}


def policy(sort: str, number: int, maximum: int = 10) -> tuple[Resource, JsonObject]:
    """Return one policy object, or exception, that selects namespaces by its sort."""
    clause: JsonObject = {
        "names": {"namespaces": [f"ns-{number}"]},
        "globs": {"namespaces": [f"g{number}-*"]},
        "keys": {"namespaceSelector": {"matchLabels": {f"k{number}": "x"}}},
        "values": {"namespaceSelector": {"matchLabels": {"team": f"v{number}"}}},
    }.get(sort, {})
    metadata: JsonObject = {"name": f"p-{number}"}
    spec: JsonObject = {"policy": "replica-limits", "params": {"maximum": maximum}}
    if sort == "tenants":
        return TENANTS, {"metadata": metadata | {"namespace": f"ns-{number}"}, "spec": spec}
    if sort == "exceptions" and number:
        entry = {
            "policy": "p-0",
            "namespaces": [f"ns-{number}"],
            "params": {"maximum": maximum * 2},
        }
        spec = {"reason": "scale", "expires": "2099-01-01T00:00:00Z", "exceptions": [entry]}
        return EXCEPTION, {"metadata": metadata | {"namespace": HOME}, "spec": spec}
    return CLUSTER_POLICY, {"metadata": metadata, "spec": spec | {"match": {"any": [clause]}}}


async def in_turn(works: Iterator[Callable[[], Awaitable[int]]]) -> int:
    """Run works, AT_ONCE at a time; return the sum of their results."""

    async def worker() -> int:
        return sum([await work() for work in works])

    return sum(await asyncio.gather(*(worker() for _ in range(AT_ONCE))))


def deployment(namespace: str, replicas: int = 1) -> JsonObject:
    """Return a Deployment."""
    metadata = {"generateName": "a-", "namespace": namespace}
    return {"metadata": metadata, "spec": SPEC | {"replicas": replicas}}


async def review(client: Client, reviews: Reviews, namespace: str) -> None:
    """Create an object as a dry run."""
    object = deployment(namespace)
    if reviews.resource == CONTROL:
        object["spec"] = {key: SPEC[key] for key in ("selector", "template")}
    began = time.perf_counter()
    try:
        await client.create(reviews.resource, object, dry_run=True)
    except (ApiError, ServerError):
        reviews.failed += 1
    reviews.times.append((time.perf_counter() - began) * 1000)


async def send(
    client: Client, several: Sequence[Reviews], namespace: str, times: Iterable[int]
) -> None:
    """Create an object of each resource in turn, as dry runs."""
    for _ in times:
        for reviews in several:
            await review(client, reviews, namespace)
            await asyncio.sleep(PAUSE)


async def create(client: Client, resource: Resource, object: JsonObject) -> int:
    """Create an object; return how often it failed, as it does if the webhook is too slow."""
    failed = 0
    while True:
        try:
            await client.create(resource, object)
        except AlreadyExists:
            return failed
        except ServerError:
            failed += 1
            await asyncio.sleep(1)
        else:
            return failed


async def in_force(client: Client, sort: str, number: int) -> float:
    """Wait until the API server answers as a policy or an exception says; return when it did."""
    namespace, _ = place_of(sort, number)
    deadline = time.monotonic() + IN_FORCE_WITHIN
    while time.monotonic() < deadline:
        try:
            await client.create(DEPLOYMENT, deployment(namespace, replicas=15), dry_run=True)
            allowed = True
        except ApiError:
            allowed = False
        if allowed is (sort == "exceptions"):
            return time.monotonic()
        await asyncio.sleep(0.1)
    raise SystemExit(f"{sort} {number} is not in force within {IN_FORCE_WITHIN:.0f} s")


async def settled(processes: Sequence[Running], busy: float = 0.1) -> float:
    """Wait until processes use less than this share of a processor; return when they did."""
    deadline = time.monotonic() + IN_FORCE_WITHIN
    before: list[float] = []
    while time.monotonic() < deadline:
        now = [cpu_seconds(each.pid) for each in processes]
        if before and max(b - a for a, b in zip(before, now, strict=True)) < busy:
            return time.monotonic() - 1.0
        before = now
        await asyncio.sleep(1.0)
    raise SystemExit(f"not idle within {IN_FORCE_WITHIN:.0f} s")


async def measure(
    client: Client, processes: dict[str, Running], sort: str, number: int
) -> list[list[Any]]:
    """Return a row for each process."""
    running = list(processes.values())
    place, labels = place_of(sort, 1)
    places = dict([(place, labels), place_of(sort, number - 1)])
    if sort == "tenants":
        places |= dict(place_of(sort, each) for each in range(number))

    async def add_namespace(name: str) -> int:
        metadata = {"name": name, "labels": places[name]}
        return await create(client, NAMESPACE, {"metadata": metadata})

    async def add(each: int) -> int:
        return await create(client, *policy(sort, each))

    await in_turn(iter([lambda name=name: add_namespace(name) for name in places]))
    for first in (0, 1):
        await add(first)
    await in_force(client, sort, 1)
    await settled(running)
    memory = [megabytes(each.pid) for each in running]
    quiet, beside = [[Reviews(each) for each in (DEPLOYMENT, CONTROL)] for _ in range(2)]
    await send(client, quiet, place, range(QUIET))
    reviewing = asyncio.create_task(send(client, beside, place, count()))
    stopwatch = ExitStack()
    stops = stopwatch.enter_context(measured_stops({each.pid: each.health for each in running}))
    before, began = [cpu_seconds(each.pid) for each in running], time.monotonic()
    failed = await in_turn(iter([lambda each=each: add(each) for each in range(2, number)]))
    created = time.monotonic()
    seconds = await in_force(client, sort, number - 1) - created
    statuses = await settled(running) - created
    each_creation = [cpu_seconds(each.pid) for each in running]
    took = f"{created - began:.0f} s, {failed} requests were repeated"
    progress(f"{number} {sort} were created in {took}")
    await change_one_by_one(client, policy_of=lambda each: policy(sort, number // 2, 11 + each))
    await settled(running)
    reviewing.cancel()
    stopwatch.close()
    unchanged = [cpu_seconds(each.pid) for each in running]
    await asyncio.sleep(CHANGES * CHANGE_EVERY)
    idle = [cpu_seconds(each.pid) for each in running]
    await change_one_by_one(client, policy_of=lambda each: policy(sort, number // 2, 91 + each))
    changed = [cpu_seconds(each.pid) for each in running]
    rows: list[list[Any]] = []
    for index, name in enumerate(processes):
        process = running[index]
        used = (changed[index] - idle[index]) - (idle[index] - unchanged[index])
        rows.append(
            [
                f"{number:,} {sort}",
                name,
                round((each_creation[index] - before[index]) / max(number - 2, 1) * 1000, 1),
                round(used / CHANGES * 1000, 1),
                round((megabytes(process.pid) - memory[index]) * 1024 / number, 1),
                stops[index],
                round(seconds, 1),
                round(max(statuses, 0.0), 1),
                *(round(each.p99, 1) for each in (*quiet, *beside)),
                f"{beside[0].failed} of {len(beside[0].times)}",
            ]
        )
    return rows


async def change_one_by_one(
    client: Client, policy_of: Callable[[int], tuple[Resource, JsonObject]]
) -> None:
    """Change one object CHANGES times."""
    for number in range(CHANGES):
        resource, object = policy_of(number)
        metadata, patch = object["metadata"], {"spec": object["spec"]}
        await client.patch(resource, metadata["name"], patch, metadata.get("namespace"))
        await asyncio.sleep(CHANGE_EVERY)


@contextmanager
def started(place: Cluster, *, together: bool) -> Iterator[dict[str, Running]]:
    """Run webhook and controller, as two processes or as `gatewright run`."""
    with ExitStack() as stack:
        if together:
            (port,) = free_ports(1)
            options = ("--kinds", "none", "--namespace", HOME, "--listen", f"127.0.0.1:{port}")
            yield {"run": stack.enter_context(place.running("run", *options))}
        else:
            yield stack.enter_context(registering_processes(place, "--kinds", "none"))


async def run(sort: str, number: int, *, together: bool) -> list[list[Any]]:
    """Measure one sort and number on a control plane of its own."""
    with tempfile.TemporaryDirectory() as directory, ExitStack() as stack:
        parts = ("etcd", "kube-apiserver")
        place = stack.enter_context(cluster(Path(directory), parts))
        place.plane.create_namespace(HOME)
        processes = stack.enter_context(started(place, together=together))
        async with Client(await load(place.plane.kubeconfig)) as client:
            return await measure(client, processes, sort, number)


def main() -> None:
    """Print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("numbers", type=int, nargs="+", help="policies of each sort")
    parser.add_argument("--sorts", nargs="+", choices=SORTS, default=SORTS)
    parser.add_argument("--run", action="store_true", help="one process: gatewright run")
    options = parser.parse_args()
    heads = [f"{name}, {unit}" if unit else name for name, unit in COLUMNS]
    print("| " + " | ".join(heads) + " |\n|" + " --- |" * len(heads), flush=True)
    for sort in options.sorts:
        for number in options.numbers:
            for row in asyncio.run(run(sort, number, together=options.run)):
                print("| " + " | ".join(map(str, row)) + " |", flush=True)


if __name__ == "__main__":
    main()
