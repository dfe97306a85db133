"""Reviews, WebApps and changes of policies for long: `python -m benchmarks.soak --minutes 60`.

On a real API server with thousands of namespaces, each with a WebApp, Deployments are created as
dry runs, of which one in four breaks a policy that never changes. Meanwhile other policies,
policies of tenants and exceptions change at random, none of which decides these verdicts, and
WebApps are scaled. Each verdict that is not the expected one is counted, and so is each WebApp
whose Deployment does not follow at the end.
"""

import argparse
import asyncio
import random
import statistics
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from benchmarks.cluster import Running, cluster
from benchmarks.idle import HOME, registering_processes
from benchmarks.measured import cpu_seconds, megabytes, progress
from benchmarks.policies import DEPLOYMENT, NAMESPACE, create, deployment, in_turn
from benchmarks.stops import measured_stops
from kube.client import Client
from kube.credentials import load
from kube.errors import ApiError, Forbidden
from kube.resource import JsonObject, Resource
from webhook.server.cluster_policies import RESOURCES

CLUSTER_POLICY, TENANTS, EXCEPTION = RESOURCES
WEBAPP = Resource("example.com", "v1", "webapps", "WebApp")
TOO_MANY, MAXIMUM = 100, 50  # replicas of a denied Deployment, and what the unchanged policy allows
CHANGE_EVERY = 2.0  # seconds
IN_FLIGHT = 40  # reviews
REPORT_EVERY = 60.0  # seconds
FOLLOWS_WITHIN = 300.0  # seconds from the last change of a WebApp to its Deployment
POLICIES = 50  # of each sort, that change


@dataclass
class Answers:
    """The answers to reviews, and the milliseconds of each since the last report."""

    times: list[float] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)

    def add(self, answer: str, text: str, milliseconds: float) -> None:
        """Count one."""
        self.counts[answer] += 1
        self.examples.setdefault(answer, text)
        self.times.append(milliseconds)

    def percentiles(self) -> str:
        """Return the median and p99 since the last call."""
        cuts = statistics.quantiles(self.times, n=100) if len(self.times) > 1 else [0.0] * 99
        self.times = []
        return f"p50 {cuts[49]:.0f} ms, p99 {cuts[98]:.0f} ms"


def policy(name: str, maximum: int, clause: JsonObject | None = None) -> JsonObject:
    """Return a policy object that limits replicas."""
    match = {"match": {"any": [clause]}} if clause is not None else {}
    spec = {"policy": "replica-limits", "params": {"maximum": maximum}, **match}
    return {"metadata": {"name": name}, "spec": spec}


def random_change(chance: random.Random, namespaces: int) -> tuple[Resource, JsonObject]:
    """Return a policy, a tenant's policy or an exception that allows what is reviewed."""
    number, maximum = chance.randrange(POLICIES), chance.randint(5, MAXIMUM - 1)
    place = f"ns-{number * 7 % namespaces}"
    sort = chance.choice(("names", "values", "tenants", "exceptions"))
    if sort == "names":
        return CLUSTER_POLICY, policy(f"names-{number}", maximum, {"namespaces": [place]})
    if sort == "values":
        labels = {"matchLabels": {"team": f"t{number}"}}
        return CLUSTER_POLICY, policy(f"values-{number}", maximum, {"namespaceSelector": labels})
    if sort == "tenants":
        tenant = policy("own", maximum)
        return TENANTS, tenant | {"metadata": {"name": "own", "namespace": place}}
    entry = {"policy": "fixed", "namespaces": [place], "params": {"maximum": MAXIMUM + number % 9}}
    spec = {"reason": "soak", "expires": "2099-01-01T00:00:00Z", "exceptions": [entry]}
    return EXCEPTION, {"metadata": {"name": f"e-{number}", "namespace": HOME}, "spec": spec}


async def review(client: Client, namespace: str, *, is_bad: bool, answers: Answers) -> None:
    """Create a Deployment as a dry run, and compare the verdict."""
    began, text = time.perf_counter(), ""
    try:
        object = deployment(namespace, TOO_MANY if is_bad else 1)
        await client.create(DEPLOYMENT, object, dry_run=True)
        answer = "ADMITTED, wrongly" if is_bad else "admitted"
    except Forbidden as error:
        answer, text = "denied" if is_bad else "DENIED, wrongly", str(error)
    except (ApiError, TimeoutError) as error:
        answer, text = f"failed: {type(error).__name__}", str(error)
    answers.add(answer, text, (time.perf_counter() - began) * 1000)


async def keep_reviewing(
    client: Client, namespaces: int, rate: float, answers: Answers, chance: random.Random
) -> None:
    """Send reviews at a rate, at random in all namespaces; less often while IN_FLIGHT wait.

    All requests are the administrator's, whom the API server exempts from priority and fairness:
    beyond its capacity, those of the controller's Lease would wait as well.
    """
    free = asyncio.Semaphore(IN_FLIGHT)
    async with asyncio.TaskGroup() as running:
        following = time.monotonic()
        for number in count():
            place = f"ns-{chance.randrange(namespaces)}"
            await free.acquire()
            task = running.create_task(
                review(client, place, is_bad=number % 4 == 0, answers=answers)
            )
            task.add_done_callback(lambda _: free.release())
            following = max(following + 1 / rate, time.monotonic() - 1)
            await asyncio.sleep(max(0.0, following - time.monotonic()))


async def keep_changing(
    client: Client, namespaces: int, changes: Counter[str], chance: random.Random
) -> None:
    """Create or change a policy, or scale a WebApp."""
    while True:
        resource, object = random_change(chance, namespaces)
        try:
            await client.apply(resource, object, field_manager="soak", force=True)
            changes[resource.kind] += 1
            place = f"ns-{chance.randrange(namespaces)}"
            replicas = {"spec": {"replicas": chance.randint(1, 4)}}
            await client.patch(WEBAPP, "shop", replicas, place)
            changes["WebApp"] += 1
        except (ApiError, TimeoutError) as error:
            changes[f"refused: {error}"[:120]] += 1
        await asyncio.sleep(CHANGE_EVERY)


async def prepare(client: Client, namespaces: int) -> None:
    """Create the unchanged policy, and namespaces with a WebApp each."""
    await client.create(
        CLUSTER_POLICY,
        policy("fixed", MAXIMUM, {"namespaceSelector": {"matchLabels": {"soak": "yes"}}}),
    )

    async def add(number: int) -> int:
        labels = {"soak": "yes", "team": f"t{number % POLICIES}"}
        place = {"metadata": {"name": f"ns-{number}", "labels": labels}}
        metadata = {"name": "shop", "namespace": f"ns-{number}"}
        spec = {"replicas": 1, "image": "registry.example/app:1", "port": 80}
        webapp = {"metadata": metadata, "spec": spec}
        return await create(client, NAMESPACE, place) + await create(client, WEBAPP, webapp)

    await in_turn(iter([lambda number=number: add(number) for number in range(namespaces)]))


async def behind(client: Client) -> int:
    """Return how many WebApps have no Deployment with their number of replicas."""
    wanted = {
        each["metadata"]["namespace"]: each["spec"]["replicas"]
        async for each in client.list(WEBAPP)
    }
    async for each in client.list(DEPLOYMENT):
        metadata = each["metadata"]
        if wanted.get(metadata["namespace"]) == each["spec"]["replicas"]:
            del wanted[metadata["namespace"]]
    return len(wanted)


async def until_followed(client: Client) -> int:
    """Wait until each WebApp has its Deployment; return how many have none in time."""
    deadline = time.monotonic() + FOLLOWS_WITHIN
    while (left := await behind(client)) and time.monotonic() < deadline:
        progress("Deployments", f"{left} WebApps without theirs")
        await asyncio.sleep(2)
    return left


async def soak(client: Client, processes: dict[str, Running], options: argparse.Namespace) -> bool:
    """Run it and print a line each minute; return whether all went well."""
    chance = random.Random(options.seed)  # noqa: S311
    began = time.monotonic()
    await prepare(client, options.namespaces)
    left = await until_followed(client)
    print(
        f"{options.namespaces:,} namespaces and WebApps after {time.monotonic() - began:.0f} s, "
        f"{left} without a Deployment; {_sizes(processes)}",
        flush=True,
    )
    answers, changes = Answers(), Counter[str]()
    work = [
        asyncio.create_task(
            keep_reviewing(client, options.namespaces, options.rate, answers, chance)
        ),
        asyncio.create_task(keep_changing(client, options.namespaces, changes, chance)),
    ]
    began = time.monotonic()
    while (elapsed := time.monotonic() - began) < options.minutes * 60:
        used = [cpu_seconds(each.pid) for each in processes.values()]
        await asyncio.sleep(min(REPORT_EVERY, options.minutes * 60 - elapsed))
        spent = time.monotonic() - began - elapsed
        shares = ", ".join(
            f"{name} {(cpu_seconds(each.pid) - before) / spent:.0%} of a core"
            for (name, each), before in zip(processes.items(), used, strict=True)
        )
        print(
            f"{(elapsed + spent) / 60:.0f} min: {sum(answers.counts.values()):,} reviews "
            f"{dict(answers.counts)}, {answers.percentiles()}; changes {dict(changes)}; "
            f"{_sizes(processes)}; {shares}",
            flush=True,
        )
    for each in work:
        each.cancel()
    await asyncio.gather(*work, return_exceptions=True)
    left = await until_followed(client)
    print(f"at the end {left} WebApps without their Deployment; {_sizes(processes)}")
    print(*(f"{name}: {text}" for name, text in answers.examples.items() if text), sep="\n")
    return not left and answers.counts.keys() <= {"admitted", "denied"}


def _sizes(processes: dict[str, Running]) -> str:
    return ", ".join(f"{name} {megabytes(each.pid):.0f} MB" for name, each in processes.items())


async def run(options: argparse.Namespace) -> bool:
    """Start a control plane, and the webhook and the controller with all kinds."""
    with (
        tempfile.TemporaryDirectory() as directory,
        cluster(Path(directory), ("etcd", "kube-apiserver")) as place,
    ):
        place.plane.create_namespace(HOME)
        with registering_processes(place) as processes:
            pages = {each.pid: each.health for each in processes.values()}
            with measured_stops(pages) as stops:
                async with Client(await load(place.plane.kubeconfig)) as client:
                    is_good = await soak(client, processes, options)
            for name, stop in zip(processes, stops, strict=True):
                print(f"{name}: longest stop of the loop {stop:.0f} ms")
            return is_good


def main() -> None:
    """Run it; exit 1 after a wrong verdict, a failed review, or a WebApp that is left behind."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=60.0, help="of reviews and changes")
    parser.add_argument("--namespaces", type=int, default=5_000, help="each with a WebApp")
    parser.add_argument("--rate", type=float, default=200.0, help="reviews a second")
    parser.add_argument("--seed", type=int, default=0)
    raise SystemExit(not asyncio.run(run(parser.parse_args())))


if __name__ == "__main__":
    main()
