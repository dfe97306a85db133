"""The measurement of enforcement beside changes: `python -m benchmarks.enforcement --minutes 60`.

Policies, their cases and namespaces change at random on a real API server, which the webhook
serves all the time. Each value of `gatewright_policy_enforced` that is not 1 is a false alarm. At
the end the webhook is stopped, which must be noticed. With `--idle`, the cost is measured before:
the processor time of a controller that has nothing else to do, with and without measuring.
"""

import argparse
import asyncio
import os
import random
import re
import signal
import tempfile
import time
import urllib.request
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.cluster import Running, cluster
from benchmarks.idle import HOME, POLICIES, registering_processes
from benchmarks.measured import cpu_seconds, megabytes, progress, settled
from controller.registration.enforcement_answers import ENFORCED
from kube.client import Client
from kube.credentials import load
from kube.errors import AlreadyExists, ApiError, NotFound
from kube.resource import JsonObject, Resource
from webhook.server.cluster_policies import CLUSTER_POLICY

NAMESPACE = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
PARTS = ("etcd", "kube-apiserver", "kube-controller-manager")  # the last one deletes namespaces
MEASURED = ("--measure-enforcement",)
AUDIT = ("--audit",)  # its engine stays in memory, as the chart runs it with `audit.enabled`
POLICIES_AT_ONCE = 16
NAMESPACES_AT_ONCE = 8
CHANGE_EVERY = 4.0  # seconds
SAMPLE_EVERY = 2.0  # seconds
NOTICED_WITHIN = 120.0  # seconds from an outage to its alarm
VALUES = re.compile(r'^gatewright_policy_enforced\{policy="([^"]+)"\} (\S+)$', re.MULTILINE)
REQUESTS = re.compile(
    r'^gatewright_enforcement_requests_total\{status="(\w+)"\} (\S+)$', re.MULTILINE
)


def policy(number: int, chance: random.Random) -> JsonObject:
    """Return a policy that denies in the namespace `default`, and in others."""
    maximum = chance.randint(1, 9)
    name = f"p-{number}"
    others: JsonObject = chance.choice(
        [
            {"namespaces": [f"ns-{chance.randrange(NAMESPACES_AT_ONCE)}"]},
            {"namespaceSelector": {"matchLabels": {"team": f"t{chance.randrange(4)}"}}},
        ]
    )
    spec: JsonObject = {"match": {"any": [{"namespaces": ["default"]}, others]}}
    if number % 3 == 0:
        rule = {"expression": f"object.spec.replicas <= {maximum}", "path": "spec.replicas"}
        spec |= {"validations": [rule]}
        for clause in spec["match"]["any"]:
            clause["kinds"] = ["Deployment"]
    elif number % 3 == 1:
        spec |= {"policy": "replica-limits", "params": {"maximum": maximum}}
    else:
        spec |= {"policy": "image-tags"}
    if number % 3 != 2:
        few = {"kind": "Deployment", "spec": {"replicas": maximum}}
        denial = {"policy": name, "path": "spec.replicas"}
        many = {"kind": "Deployment", "spec": {"replicas": maximum + 1}}
        spec["cases"] = [
            {"name": "few", "object": few, "expect": "allowed"},
            {"name": "many", "object": many, "expect": {"denied": [denial]}},
        ]
    return {"metadata": {"name": name}, "spec": spec}


async def change(client: Client, chance: random.Random) -> str:
    """Change a policy or a namespace; return what was done."""
    name = f"p-{chance.randrange(POLICIES_AT_ONCE)}"
    space = f"ns-{chance.randrange(NAMESPACES_AT_ONCE)}"
    what = chance.choice(["apply", "apply", "apply", "delete", "label", "remove"])
    with suppress(NotFound, AlreadyExists):
        if what == "apply":
            object = policy(int(name[2:]), chance)
            api = {"apiVersion": CLUSTER_POLICY.api_version, "kind": CLUSTER_POLICY.kind}
            await client.apply(CLUSTER_POLICY, api | object, field_manager="soak", force=True)
        elif what == "delete":
            await client.delete(CLUSTER_POLICY, name)
        elif what == "label":
            labels = {"team": f"t{chance.randrange(4)}"}
            wanted = {"metadata": {"name": space, "labels": labels}}
            api = {"apiVersion": "v1", "kind": "Namespace"}
            await client.apply(NAMESPACE, api | wanted, field_manager="soak", force=True)
        else:
            await client.delete(NAMESPACE, space)
    return what


@dataclass
class Observed:
    """What the metrics of the controller showed."""

    alarms: dict[tuple[str, str], list[float]] = field(default_factory=dict)
    messages: dict[str, str] = field(default_factory=dict)
    """The condition Enforced at the first alarm of each policy object."""
    samples: int = 0
    enforced: int = 0
    requests: dict[str, float] = field(default_factory=dict)
    unread: int = 0
    """Times at which the metrics did not answer in time."""

    def read(self, controller: Running) -> dict[str, str]:
        """Return the value of each policy now; none if the process does not answer in time."""
        try:
            with urllib.request.urlopen(controller.metrics, timeout=60) as answer:  # noqa: S310
                text = answer.read().decode()
        except OSError:
            self.unread += 1
            return {}
        self.requests = {status: float(value) for status, value in REQUESTS.findall(text)}
        return dict(VALUES.findall(text))

    def sample(self, controller: Running) -> None:
        """Note the values that are not 1."""
        for title, value in self.read(controller).items():
            self.samples += 1
            if float(value) == 1:
                self.enforced += 1
            else:
                self.alarms.setdefault((title, value), []).append(time.monotonic())

    def table(self, began: float) -> str:
        """Return a line for each policy with an alarm."""
        return "\n".join(
            f"  {title} = {value}: {len(times)} samples, from {times[0] - began:.0f} s "
            f"to {times[-1] - began:.0f} s; {self.messages.get(title, 'no object')}"
            for (title, value), times in sorted(self.alarms.items())
        )


async def condition(client: Client, title: str) -> str:
    """Return the condition Enforced of a policy object, for people."""
    try:
        status = (await client.get(CLUSTER_POLICY, title)).get("status") or {}
    except NotFound:
        return "deleted"
    found = [each for each in status.get("conditions", ()) if each["type"] == ENFORCED]
    return "".join(f"{each['status']} {each['reason']}: {each['message']}" for each in found)


async def soak(client: Client, processes: dict[str, Running], seconds: float, seed: int) -> bool:
    """Change policies for this time, then stop the webhook; return whether all went well."""
    chance, observed, changes = random.Random(seed), Observed(), Counter[str]()  # noqa: S311
    controller, webhook = processes["controller"], processes["webhook"]
    with suppress(AlreadyExists):
        await client.create(NAMESPACE, {"metadata": {"name": "production"}})
    began = next_change = time.monotonic()
    cpu = cpu_seconds(controller.pid)
    while (now := time.monotonic()) < began + seconds:
        if now >= next_change:
            try:
                changes[await change(client, chance)] += 1
            except ApiError as error:
                changes[f"refused: {error.reason}"] += 1
            next_change = now + CHANGE_EVERY
        await asyncio.to_thread(observed.sample, controller)
        for title, _ in observed.alarms:
            if title not in observed.messages:
                observed.messages[title] = await condition(client, title)
        progress("soak,", f"{(now - began) / 60:.0f} min, alarms: {len(observed.alarms)}")
        await asyncio.sleep(SAMPLE_EVERY)
    elapsed = time.monotonic() - began
    print(f"{elapsed / 60:.1f} min, changes: {dict(changes)}, seed {seed}")
    print(
        f"samples: {observed.samples}, enforced: {observed.enforced}, "
        f"metrics without an answer: {observed.unread}; others:"
    )
    print(observed.table(began) or "  none")
    sent = sum(observed.requests.values())
    print(f"dry runs a minute: {sent / (elapsed / 60):.1f}, by result: {observed.requests}")
    print(f"controller: {(cpu_seconds(controller.pid) - cpu) / elapsed:.2%} of a core")
    before = set(observed.alarms)
    os.kill(webhook.pid, signal.SIGSTOP)
    stopped, values = time.monotonic(), {"": "1.0"}
    while time.monotonic() < stopped + NOTICED_WITHIN and "1.0" in values.values():
        await asyncio.sleep(SAMPLE_EVERY)
        values = await asyncio.to_thread(observed.read, controller)
    left = sum(value == "1.0" for value in values.values())
    print(
        f"the webhook was stopped: seen for {len(values) - left} of {len(values)} policies "
        f"after {time.monotonic() - stopped:.0f} s"
    )
    return not before and not left


async def cost(client: Client, processes: dict[str, Running], seconds: float) -> None:
    """Print the processor time and memory of a controller that has nothing to do."""
    with suppress(AlreadyExists):
        await client.create(NAMESPACE, {"metadata": {"name": "production"}})
    controller = processes["controller"]
    await asyncio.to_thread(settled, controller.pid)
    cpu = cpu_seconds(controller.pid)
    await asyncio.sleep(seconds)
    used = (cpu_seconds(controller.pid) - cpu) / seconds
    print(f"  {used:.2%} of a core, {megabytes(controller.pid):.1f} MB")


async def run(minutes: float, idle: float, seed: int) -> bool:
    """Measure the cost, then the soak."""
    with tempfile.TemporaryDirectory() as directory, cluster(Path(directory), PARTS) as found:
        found.plane.create_namespace(HOME)
        async with Client(await load(found.plane.kubeconfig)) as client:
            variants: dict[str, tuple[str, ...]] = {
                "not measured": AUDIT,
                "measured": (*AUDIT, *MEASURED),
                "measured, with the cases of a preset": (
                    *AUDIT,
                    *MEASURED,
                    "--preset-cases",
                    "production",
                ),
            }
            for name, options in variants.items() if idle else ():
                print(f"{name}, {idle:g} min of rest:")
                await _with_processes(found, options, lambda each: cost(client, each, idle * 60))
            if not minutes:
                return True
            result: list[bool] = []

            async def soaked(processes: dict[str, Running]) -> None:
                result.append(await soak(client, processes, minutes * 60, seed))

            await _with_processes(found, MEASURED, soaked)
            return result == [True]


async def _with_processes(found: Any, options: tuple[str, ...], work: Any) -> None:
    with registering_processes(
        found, "--policies", str(POLICIES), of_controller=options
    ) as processes:
        await work(processes)
    configurations = "validatingwebhookconfigurations,mutatingwebhookconfigurations"
    found.plane.kubectl("delete", configurations, "gatewright")


def main() -> None:
    """Run it; exit 1 after a false alarm, or if the outage is not noticed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=60.0, help="of changes")
    parser.add_argument("--idle", type=float, default=0.0, help="minutes of rest, to see the cost")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    raise SystemExit(not asyncio.run(run(arguments.minutes, arguments.idle, arguments.seed)))


if __name__ == "__main__":
    main()
