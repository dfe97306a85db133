"""`python -m benchmarks.audit`: the cost of one audit of many objects, on a real API server.

Objects of five kinds are created, a tenth of each against the production set, or against one policy
for Services and one for ConfigMaps and Secrets; then the audit runs twice in this process, and once
more after one object is corrected. Nothing else of the controller runs, so that CPU and memory are
the audit's. What the cap on reports leaves out is printed as it is reported.

`--etcd` measures something else: the growth of etcd's database by the reports of 100,000
violations.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from resource import RUSAGE_SELF, getrusage

import uvloop
import yaml
from prometheus_client import CollectorRegistry

from controller.audit.audit import REQUEST, SOON, Audit
from controller.audit.reports import KINDS, TRUNCATED
from controller.registration.configurations import SYSTEM_NAMESPACES
from kube.client import Client
from kube.credentials import load
from kube.errors import NotFound, TooManyRequests
from kube.resource import CRD, JsonObject, Resource
from tests.controlplane.plane import ControlPlane
from webhook.engine import Engine
from webhook.engine.exceptions import HOME
from webhook.policy_sets.catalogue import catalogue
from webhook.policy_sets.policy_set import in_force
from webhook.server.policy_files import policy_set_of

POD = Resource("", "v1", "pods", "Pod")
DEPLOYMENT = Resource("apps", "v1", "deployments", "Deployment")
SERVICE = Resource("", "v1", "services", "Service")
CONFIG_MAP = Resource("", "v1", "configmaps", "ConfigMap")
SECRET = Resource("", "v1", "secrets", "Secret")
MIXED = (DEPLOYMENT, POD, SERVICE, CONFIG_MAP, SECRET)
ROOT = Path(__file__).parents[1]
POLICIES = ROOT / "config/policies/production.yaml"
OF_OTHER_KINDS = """\
apiVersion: gatewright.io/v1alpha1
kind: ClusterAdmissionPolicy
metadata: {name: services}
spec: {policy: service-types, params: {forbidden: [ExternalName]}}
---
apiVersion: gatewright.io/v1alpha1
kind: ClusterAdmissionPolicy
metadata: {name: owners}
spec:
  policy: required-labels
  params: {labels: {app: "*"}}
  validationActions: [Audit]
  match: {any: [{kinds: [ConfigMap, Secret], namespaces: [production]}]}
"""
REPORT_CRDS = ROOT / "config/crd/reports/openreports.io.yaml"
AT_ONCE = 20  # concurrent creations
MB = 1_000_000


def mixed(number: int) -> tuple[Resource, JsonObject]:
    """Return an object of about 1 KB; every tenth of its kind breaks policies."""
    resource, bad = MIXED[number % len(MIXED)], number // len(MIXED) % 10 == 0
    labels = {"app": f"app-{number}"}
    metadata: JsonObject = {"name": f"app-{number}", "namespace": "production", "labels": labels}
    if resource in {POD, DEPLOYMENT}:
        spec = pod_spec(bad=bad)
        if resource == DEPLOYMENT:
            template = {"metadata": {"labels": labels}, "spec": spec}
            replicas = 11 if bad else 1
            spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
        return resource, {"metadata": metadata, "spec": spec}
    if resource == SERVICE:
        spec = {"clusterIP": "None", "ports": [{"port": 80}], "selector": labels}
        if bad:
            spec = {"type": "ExternalName", "externalName": "example.com"}
        return resource, {"metadata": metadata, "spec": spec}
    data = {f"key-{each}": "x" * 80 for each in range(10)}
    if bad:
        del metadata["labels"]
    field = "stringData" if resource == SECRET else "data"
    return resource, {"metadata": metadata, field: data}


def pod_spec(*, bad: bool) -> JsonObject:
    """Return the spec of a pod; a bad one has an image that production denies."""
    container = {
        "name": "app",
        "image": "nginx:1.21" if bad else "registry.company.com/shop:1",
        "resources": {"limits": {"cpu": "1", "memory": "1Gi"}},
        "env": [{"name": f"VARIABLE_{each}", "value": "x" * 20} for each in range(10)],
    }
    return {"containers": [container]}


def worst(number: int) -> tuple[Resource, JsonObject]:
    """Return a Deployment with ten violations: the images and limits of five containers."""
    containers = [{"name": f"container-{each}", "image": f"nginx:1.2{each}"} for each in range(5)]
    _, bad = mixed(number * len(MIXED))
    bad["spec"]["replicas"] = 1
    bad["spec"]["template"]["spec"]["containers"] = containers
    return DEPLOYMENT, bad


async def prepare(
    client: Client, objects: int, make: Callable[[int], tuple[Resource, JsonObject]]
) -> None:
    """Create the CRDs of the reports and the objects."""
    for each in yaml.safe_load_all(REPORT_CRDS.read_text()):
        await client.create(CRD, each)
    for resource in KINDS["openreports"]:
        await until_served(client, resource)
    for first in range(0, objects, AT_ONCE):
        numbers = range(first, min(first + AT_ONCE, objects))
        await asyncio.gather(*(client.create(*make(number)) for number in numbers))
        if numbers.stop % 1_000 == 0:
            print(f"created {numbers.stop:,} of {objects:,}", file=sys.stderr, flush=True)


async def until_served(client: Client, resource: Resource) -> None:
    """Wait until the API server has loaded a new kind; until then it answers 404, then 429."""
    async with asyncio.timeout(30):
        while True:
            try:
                async for _ in client.list(resource):
                    pass
            except (NotFound, TooManyRequests):
                await asyncio.sleep(0.2)
            else:
                return


def audit_of(
    client: Client, qps: float, now: Callable[[], datetime], policies: Sequence[Path]
) -> Audit:
    """Return an audit by policies of files."""
    engine = Engine(in_force(policy_set_of(policies, catalogue()), catalogue(), HOME))
    return Audit(
        client,
        lambda: engine,
        CollectorRegistry(),
        interval=timedelta(minutes=10),
        qps=qps,
        excluded_namespaces=SYSTEM_NAMESPACES,
        now=now,
    )


async def measure(plane: ControlPlane, objects: int, qps: float) -> None:
    """Run the audits and print the cost of each."""
    endpoint = await load(plane.kubeconfig)
    async with Client(endpoint) as client:
        await prepare(client, objects, mixed)
    requests: Counter[str] = Counter()
    now = datetime.now(UTC)
    async with Client(endpoint, on_response=lambda method, _: requests.update([method])) as client:
        others = plane.directory / "of-other-kinds.yaml"
        others.write_text(OF_OTHER_KINDS)
        audit = audit_of(client, qps, lambda: now, [POLICIES, others])
        print(
            f"{'audit':<22}{'CPU s':>8}{'wall s':>8}{'RSS +MB':>9}"
            f"{'GET':>7}{'PATCH':>7}{'DELETE':>8}{'objects':>9}"
        )
        before = getrusage(RUSAGE_SELF).ru_maxrss
        for title in ("first", "second, unchanged", "one mended"):
            if title == "one mended":
                await client.patch(DEPLOYMENT, "app-0", {"spec": {"replicas": 1}}, "production")
            requests.clear()
            cpu, wall, now = time.process_time(), time.monotonic(), now + SOON
            await audit.reconcile(REQUEST)
            grown = (getrusage(RUSAGE_SELF).ru_maxrss - before) / 1024
            assert audit.totals is not None
            judged = next(iter(audit.totals.values()))["auditedObjects"]
            print(
                f"{title:<22}{time.process_time() - cpu:>8.2f}"
                f"{time.monotonic() - wall:>8.1f}{grown:>9.1f}"
                f"{requests['GET']:>7}{requests['PATCH']:>7}{requests['DELETE']:>8}{judged:>9}",
                flush=True,
            )
        reports, summaries = await read_reports(client)
    kept = Counter(
        ", ".join(sorted({f"{one['policy']} {one['result']}" for one in each["results"]}))
        for each in reports
    )
    print(*(f"{number:,} reports: {what}" for what, number in kept.most_common()), sep="\n")
    for each in summaries:
        if each["metadata"]["name"] == TRUNCATED:
            print(*(f"{one['policy']}: {one['message']}" for one in each["results"]), sep="\n")


async def read_reports(client: Client) -> list[list[JsonObject]]:
    """Return the reports, and the cluster's."""
    return [[each async for each in client.list(resource)] for resource in KINDS["openreports"]]


async def measure_etcd(plane: ControlPlane, objects: int, qps: float) -> None:
    """Run one audit of objects with ten violations each, and print the size of its reports."""
    async with Client(await load(plane.kubeconfig)) as client:
        await prepare(client, objects, worst)
        before = database_size(plane)
        audit = audit_of(client, qps, lambda: datetime.now(UTC), [POLICIES])
        await audit.reconcile(REQUEST)
        after = database_size(plane)
        assert audit.totals is not None
        reports, summaries = await read_reports(client)
    print(
        f"{sum(each['violations'] for each in audit.totals.values()):,} violations of {objects:,} "
        "objects"
    )
    print(
        f"{len(reports):,} reports with {sum(len(each['results']) for each in reports):,} results"
    )
    print(
        *(f"{each['metadata']['name']}: {each['results'][0]['message']}" for each in summaries),
        sep="\n",
    )
    print(
        f"etcd: {before / MB:.1f} MB before, {after / MB:.1f} MB after: "
        f"{(after - before) / MB:.1f} MB of reports"
    )


def database_size(plane: ControlPlane) -> float:
    """Return the size of etcd's database in bytes, from the API server's metrics."""
    lines = plane.kubectl("get", "--raw", "/metrics").stdout.splitlines()
    return sum(
        float(line.rpartition(" ")[2])
        for line in lines
        if line.startswith("apiserver_storage_size_bytes{")
    )


def main() -> None:
    """Start a control plane, measure, and stop it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.audit", description=__doc__)
    parser.add_argument("--objects", type=int, default=10_000)
    parser.add_argument(
        "--etcd", action="store_true", help="the size of 100,000 violations' reports in etcd"
    )
    parser.add_argument(
        "--qps", type=float, default=1000, help="requests a second; the chart's default is 20"
    )
    arguments = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as directory,
        ControlPlane.start(Path(directory) / "plane", parts=("etcd", "kube-apiserver")) as plane,
    ):
        plane.create_namespace("production")
        run = measure_etcd if arguments.etcd else measure
        uvloop.run(run(plane, arguments.objects, arguments.qps))


if __name__ == "__main__":
    main()
