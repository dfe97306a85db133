"""`python -m benchmarks.stacks`: the memory of a controller beside AppStacks, and its restart.

Half of the stacks have a queue, services and autoscaling, or with `--plain` none. etcd and an API
server run and nothing else, so no pod becomes ready: components that wait for others are not
created. Requests are from the API server's audit log.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.error import URLError

from benchmarks.cluster import Cluster, Running, cluster
from benchmarks.measured import megabytes, progress, settled
from benchmarks.webapps import AGENT
from tests.controlplane.audit import WRITES

ALONE = ("etcd", "kube-apiserver")
NAMESPACE = "stacks"
PATH = f"/apis/app.example.com/v1/namespaces/{NAMESPACE}/appstacks"
WORKLOAD = {"image": "registry.company.com/shop:1"}
PLAIN = {"cache": {}, "backend": WORKLOAD, "frontend": WORKLOAD}
NEW = {
    "queue": {"type": "nats"},
    "services": [
        {**WORKLOAD, "name": "orders", "autoscaling": {"max": 3}},
        {**WORKLOAD, "name": "mail"},
        {**WORKLOAD, "name": "reports", "dependsOn": ["queue", "orders"]},
    ],
}
CREATORS = 8
QUIET_SECONDS = 10


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.stacks", description=__doc__)
    parser.add_argument("count", nargs="?", type=int, default=1000, help="default: 1000")
    parser.add_argument("--plain", action="store_true", help="no stack uses the new fields")
    given = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as directory,
        cluster(Path(directory), ALONE) as plane,
    ):
        plane.plane.create_namespace(NAMESPACE)
        specs = [
            PLAIN if given.plain or number % 2 else {**NEW, "cache": {}}
            for number in range(given.count)
        ]
        found = measure(plane, specs)
    print(json.dumps({"stacks": given.count, "plain": given.plain, **found}))
    if found["restart writes"]:
        sys.exit("a restart writes to stacks that did not change")


def measure(cluster: Cluster, specs: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Create stacks beside an idle controller, then start another controller beside them."""
    with cluster.controller(NAMESPACE) as controller:
        settled(controller.pid)
        idle, mark = megabytes(controller.pid), cluster.plane.audit_mark()
        create(cluster, specs)
        created = _until_no_write(cluster, mark)
        beside = megabytes(controller.pid)
    mark = cluster.plane.audit_mark()
    with cluster.controller(NAMESPACE) as controller:
        while (done := _reconciles(controller)) < len(specs):
            progress("restart:", f"{done} of {len(specs)} reconciles")
            time.sleep(1)
        writes, restarted = _until_no_write(cluster, mark), megabytes(controller.pid)
    return {
        "idle MB": round(idle, 1),
        "beside them MB": round(beside, 1),
        "writes": created,
        "restart MB": round(restarted, 1),
        "restart writes": writes,
    }


def _reconciles(controller: Running) -> int:
    """Return the reconciles of stacks; 0 before the controller answers."""
    with suppress(URLError):
        return controller.reconciles("appstack")
    return 0


def _until_no_write(cluster: Cluster, mark: int) -> int:
    """Return the number of the controller's writes since a mark, once there were none for a while.

    A stack that waits is looked at every 30 s, so a controller beside many is never idle.
    """
    before = -1
    while (writes := len(_writes(cluster, mark))) != before:
        progress("writes:", str(writes))
        before = writes
        time.sleep(QUIET_SECONDS)
    return writes


def create(cluster: Cluster, specs: Sequence[dict[str, Any]]) -> None:
    """Create a stack of each spec."""

    def post(numbered: tuple[int, dict[str, Any]]) -> None:
        number, spec = numbered
        stack = {
            "apiVersion": "app.example.com/v1",
            "kind": "AppStack",
            "metadata": {"name": f"shop-{number}"},
            "spec": spec,
        }
        code, answer = cluster.api.request("POST", PATH, stack)
        if code != 201:
            sys.exit(f"no stack: {answer.decode()}")

    with ThreadPoolExecutor(CREATORS) as pool:
        list(pool.map(post, enumerate(specs)))


def _writes(cluster: Cluster, since: int) -> list[dict[str, Any]]:
    """Return the controller's writes in the namespace since a mark."""
    return [
        event
        for event in cluster.events(since, NAMESPACE)
        if event["userAgent"] == AGENT and event["verb"] in WRITES
    ]


if __name__ == "__main__":
    main()
