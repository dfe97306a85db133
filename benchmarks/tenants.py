"""Which requests reach the webhook beside many tenants: `python -m benchmarks.tenants 0 4 40 400`.

Each tenant has one AdmissionPolicy about one kind, with excluded users of its own; all rules deny,
and so does the production set for what is created here. So each request that the webhook allows
reached it although no policy judges it. All kinds are created, as dry runs by a user that no policy
excludes, in every tenant's namespace, in production, in a namespace labelled as production and in
one without policies. The registration is printed too.
"""

import argparse
import asyncio
import json
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.cluster import ROOT, Cluster, Running, cluster
from benchmarks.idle import HOME, registering_processes
from benchmarks.policies import DEPLOYMENT, NAMESPACE, create, deployment, in_turn
from kube.client import Client
from kube.credentials import load
from kube.errors import Forbidden
from kube.resource import JsonObject, Resource
from webhook.server.cluster_policies import RESOURCES

_, TENANTS, _ = RESOURCES
POLICIES = ("--policies", str(ROOT / "config/policies/production.yaml"))
POD = {"containers": [{"name": "a", "image": "nginx:1.21"}]}
# Resources, and the object that is created: production denies the first two.
OBJECTS: dict[Resource, JsonObject] = {
    Resource("", "v1", "pods", "Pod"): {"spec": POD},
    DEPLOYMENT: {"spec": deployment("")["spec"]},
    Resource("", "v1", "configmaps", "ConfigMap"): {"data": {"a": "b"}},
    Resource("", "v1", "secrets", "Secret"): {"stringData": {"a": "b"}},
    Resource("", "v1", "services", "Service"): {"spec": {"ports": [{"port": 80}]}},
    Resource("", "v1", "serviceaccounts", "ServiceAccount"): {},
}
KINDS = list(OBJECTS)
JUDGED_IN_PRODUCTION = KINDS[:2]
PLACES: dict[str, dict[str, str]] = {
    "production": {},
    "labelled": {"environment": "production"},
    "free": {},
}
REGISTERED_WITHIN = 120.0
COLUMNS = (
    "tenants",
    "webhooks",
    "bytes of the configuration",
    "requests",
    "denied",
    "reached the webhook",
    "of these judged by none",
    "widened policies",
)


def kind_of(number: int) -> Resource:
    """Return the kind that a tenant's policy is about."""
    return KINDS[number % len(KINDS)]


def policy(number: int) -> JsonObject:
    """Return a tenant's policy, which denies all objects of its kind."""
    match = {
        "any": [{"kinds": [kind_of(number).kind]}],
        "exclude": {"users": [f"user-{number}", "*-bot"], "groups": [f"group-{number}"]},
    }
    rule = {"expression": "false", "message": "denied"}
    metadata = {"name": "own", "namespace": f"tenant-{number}"}
    return {"metadata": metadata, "spec": {"match": match, "validations": [rule]}}


def wanted(tenants: int) -> dict[tuple[str, Resource], bool]:
    """Return each namespace and kind of a request, and whether a policy judges it."""
    own = {f"tenant-{number}": kind_of(number) for number in range(tenants)}
    return {
        (place, kind): own.get(place) == kind
        or (place in {"production", "labelled"} and kind in JUDGED_IN_PRODUCTION)
        for place in (*PLACES, *own)
        for kind in KINDS
    }


async def is_denied(client: Client, place: str, kind: Resource) -> bool:
    """Create an object as a dry run; return whether a policy denies it."""
    metadata = {"generateName": "a-", "namespace": place}
    try:
        await client.create(kind, OBJECTS[kind] | {"metadata": metadata}, dry_run=True)
    except Forbidden:
        return True
    return False


async def until_registered(client: Client, tenants: range) -> None:
    """Wait until each of these tenants' policies denies."""
    deadline = time.monotonic() + REGISTERED_WITHIN
    for number in tenants:
        while not await is_denied(client, f"tenant-{number}", kind_of(number)):
            if time.monotonic() > deadline:
                sys.exit(f"tenant {number} is not registered in time")
            await asyncio.sleep(0.5)


def reviews(webhook: Running) -> Counter[str]:
    """Return the numbers of reviews that the webhook answered, by verdict."""
    with urllib.request.urlopen(webhook.metrics, timeout=60) as answer:  # noqa: S310
        lines = answer.read().decode().splitlines()
    found = Counter[str]()
    for line in lines:
        if line.startswith("gatewright_admission_reviews_total{"):
            found[line.partition('verdict="')[2].partition('"')[0]] += int(float(line.split()[-1]))
    return found


def value(controller: Running, metric: str) -> int:
    """Return a gauge of the controller."""
    with urllib.request.urlopen(controller.metrics, timeout=60) as answer:  # noqa: S310
        lines = answer.read().decode().splitlines()
    return next(int(float(line.split()[1])) for line in lines if line.startswith(f"{metric} "))


def webhooks(place: Cluster) -> list[JsonObject]:
    """Return the webhooks that are registered."""
    kinds = "validatingwebhookconfigurations,mutatingwebhookconfigurations"
    items = json.loads(place.plane.kubectl("get", kinds, "-o", "json").stdout)["items"]
    return [webhook for item in items for webhook in item.get("webhooks", ())]


def describe(webhook: JsonObject) -> str:
    """Return a webhook's resources, its selector with the first values, and its conditions."""
    resources = sorted({each for rule in webhook["rules"] for each in rule["resources"]})
    selector = [
        f"{each['key']} {each['operator']} {few(each.get('values', []))}"
        for each in webhook["namespaceSelector"].get("matchExpressions", ())
    ]
    conditions = [each["name"] for each in webhook.get("matchConditions", ())]
    return f"  {webhook['name']}: {few(resources)}; {'; '.join(selector)}; {few(conditions)}"


def few(texts: list[str]) -> str:
    """Return the first three of many texts, and how many there are."""
    if len(texts) <= 6:
        return f"[{', '.join(texts)}]"
    return f"[{', '.join(texts[:3])} … {len(texts)} in all]"


async def measure(
    client: Client, place: Cluster, processes: dict[str, Running], tenants: int
) -> list[Any]:
    """Send all requests, and return the row."""
    denied_wrongly = 0
    before = reviews(processes["webhook"])
    requests = wanted(tenants)
    for (namespace, kind), is_judged in requests.items():
        denied_wrongly += await is_denied(client, namespace, kind) is not is_judged
    found = reviews(processes["webhook"]) - before
    if denied_wrongly:
        sys.exit(f"{denied_wrongly} of {len(requests)} verdicts are not the expected ones")
    registered = webhooks(place)
    for each in registered:
        print(describe(each), file=sys.stderr)
    return [
        tenants,
        len(registered),
        len(json.dumps(registered)),
        len(requests),
        found["denied"],
        found.total(),
        found.total() - found["denied"],
        value(processes["controller"], "gatewright_registration_widened_policies"),
    ]


async def add(client: Client, number: int) -> int:
    """Create a tenant."""
    namespace = {"metadata": {"name": f"tenant-{number}"}}
    return await create(client, NAMESPACE, namespace) + await create(
        client, TENANTS, policy(number)
    )


async def run(numbers: list[int]) -> bool:
    """Print a row for each number; return whether no request was sent for nothing."""
    with (
        tempfile.TemporaryDirectory() as directory,
        cluster(Path(directory), ("etcd", "kube-apiserver")) as place,
    ):
        place.plane.create_namespace(HOME)
        async with Client(await load(place.plane.kubeconfig)) as client:
            for name, labels in PLACES.items():
                await create(client, NAMESPACE, {"metadata": {"name": name, "labels": labels}})
            with registering_processes(place, "--kinds", "none", *POLICIES) as processes:
                last, needless = 0, 0
                for number in sorted(numbers):
                    several = range(last, number)
                    await in_turn(iter([lambda each=each: add(client, each) for each in several]))
                    await until_registered(client, several)
                    row = await measure(client, place, processes, number)
                    print("| " + " | ".join(f"{each:,}" for each in row) + " |", flush=True)
                    last, needless = number, needless + row[6]
    return not needless


def main() -> None:
    """Print a table in Markdown; exit 1 if a request that no policy judges reached the webhook."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("numbers", type=int, nargs="+", help="numbers of tenants")
    options = parser.parse_args()
    print("| " + " | ".join(COLUMNS) + " |\n|" + " --- |" * len(COLUMNS), flush=True)
    raise SystemExit(not asyncio.run(run(options.numbers)))


if __name__ == "__main__":
    main()
