"""The time until each sabotage of enforcement is noticed: `python -m benchmarks.sabotages`.

Each sabotage has a namespace of its own on a real API server, with policies, a webhook and its
registration, which the leader's dry runs measure at the interval that is shipped. No controller
repairs the registrations. All sabotages begin at once, after every policy was measured, and end
when they were noticed for every policy, or after LIMIT.
"""

import argparse
import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, ExitStack
from dataclasses import replace
from pathlib import Path

from benchmarks.measured import progress
from config.api.match import MatchSpec
from config.faults import parse
from controller.registration.configurations import VALIDATING
from controller.registration.enforcement import REQUEST
from tests.controller.registration.test_enforcement_on_a_cluster import (
    SABOTAGES,
    TITLE,
    Measured,
    policies_in,
    serving,
)
from tests.controlplane.plane import ControlPlane
from webhook.engine import Engine
from webhook.engine.match import Match, compile_match

LIMIT = 600.0  # seconds
PARTS = ("etcd", "kube-apiserver")
Sabotage = Callable[[Measured], Awaitable[None]]


def policies(namespace: str, number: int, action: str = "Deny") -> Engine:
    """Return an engine with this many policies in one namespace, each about other objects.

    So each needs a dry run of its own.
    """
    (limits,) = (each for each in policies_in(namespace, action).policies if each.name == TITLE)

    def about(team: str) -> Match:
        selector = {"objectSelector": {"matchLabels": {"team": team}}}
        return compile_match(parse(MatchSpec, {"any": [{"namespaces": [namespace], **selector}]}))

    return Engine(
        replace(limits, name=f"{TITLE}-{each}", match=about(f"t{each}")) for each in range(number)
    )


async def hang(measured: Measured) -> None:
    """Register an address that accepts connections and never answers."""
    connections = []

    def accept(_: object, writer: asyncio.StreamWriter) -> None:
        connections.append(writer)

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    await measured.register(clientConfig={"url": f"https://127.0.0.1:{port}"})


async def delete(measured: Measured) -> None:
    """Delete the registration."""
    await measured.client.delete(VALIDATING, measured.name)


def sabotages(number: int) -> dict[str, Sabotage]:
    """Return what is done, by name."""

    def change(name: str) -> Sabotage:
        return lambda measured: measured.register(**SABOTAGES[name][0](measured.address))

    async def warn(measured: Measured) -> None:
        measured.webhook.engine = policies(measured.namespace, number, "Warn")

    async def lack(measured: Measured) -> None:
        measured.webhook.engine = policies(measured.namespace, 0)

    return {name: change(name) for name in SABOTAGES} | {
        "the configuration is deleted": delete,
        "the webhook hangs": hang,
        "the webhook warns where the leader denies": warn,
        "the webhook lacks the policies": lack,
    }


async def measure(measured: Measured) -> None:
    """Measure for ever, as the controller does."""
    while True:
        measured.now = time.monotonic()
        result = await measured.probe.reconcile(REQUEST)
        assert result.requeue_after is not None
        await asyncio.sleep(result.requeue_after.total_seconds())


def statuses(measured: Measured) -> list[str]:
    """Return the status of each policy; "" before it is known."""
    assert measured.leader.engine is not None
    found = (measured.probe.of(each.title) for each in measured.leader.engine.policies)
    return ["" if each is None else f"{each.status} {each.reason}" for each in found]


async def until(measured: Sequence[Measured], sign: Callable[[str], bool]) -> list[float]:
    """Wait until a status is so for every policy of each; return the seconds, at most LIMIT."""
    began, took = time.monotonic(), dict[int, float]()
    while len(took) < len(measured) and (now := time.monotonic() - began) < LIMIT:
        for place, each in enumerate(measured):
            if place not in took and all(map(sign, statuses(each))):
                took[place] = now
        progress("noticed", f"{len(took)} of {len(measured)} after {now:.0f} s")
        await asyncio.sleep(0.5)
    return [took.get(place, LIMIT) for place in range(len(measured))]


async def run(number: int, names: Sequence[str]) -> bool:
    """Print a table; return whether each was noticed within LIMIT."""
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        plane = stack.enter_context(ControlPlane.start(directory / "plane", parts=PARTS))
        async with AsyncExitStack() as servers:
            return await _run(plane, directory, servers, number, names)


async def _run(
    plane: ControlPlane, directory: Path, stack: AsyncExitStack, number: int, names: Sequence[str]
) -> bool:
    measured, every = list[Measured](), sabotages(number)
    every = {name: every[name] for name in names or every}
    for place in range(len(every)):
        namespace = f"place-{place}"
        plane.create_namespace(namespace)
        own = directory / namespace
        own.mkdir()
        found = await serving(plane, namespace, own, stack)
        found.leader.engine = found.webhook.engine = policies(namespace, number)
        measured.append(found)
    group = await stack.enter_async_context(asyncio.TaskGroup())
    tasks = [group.create_task(measure(each)) for each in measured]
    await until(measured, lambda status: status == "True Denied")
    await asyncio.gather(*(do(to) for do, to in zip(every.values(), measured, strict=True)))
    took = await until(measured, lambda status: not status.startswith("True"))
    rows = zip(every, took, measured, strict=True)
    print(
        f"| sabotage | result | noticed for all of {number} policies after |\n| --- | --- | --- |"
    )
    for name, seconds, each in rows:
        print(f"| {name} | {', '.join(sorted(set(statuses(each))))} | {seconds:.0f} s |")
    for task in tasks:
        task.cancel()
    await asyncio.gather(*(each.register() for each in measured))  # its end deletes each
    return max(took) < LIMIT


def main() -> None:
    """Run it; exit 1 if a sabotage is not noticed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--policies", type=int, default=20, help="in each namespace")
    parser.add_argument("names", nargs="*", metavar="NAME", help="sabotages; default: all")
    arguments = parser.parse_args()
    raise SystemExit(not asyncio.run(run(arguments.policies, arguments.names)))


if __name__ == "__main__":
    main()
