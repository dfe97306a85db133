"""`python -m benchmarks.neighbours`: what other people's objects cost the controller.

The cluster has some objects of Gatewright's kinds. The controller, with all kinds, starts once
beside nothing else, and once beside a million bytes of other people's objects for each of its own,
of each kind that it watches. Each row has its memory at rest and the peak of the start. The
controller that runs while they are created is the row "meanwhile". Then others' objects have
the labels of Gatewright's and name one of its objects as their controller, which anybody may do:
the rows "forged owners".
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import asdict, astuple, dataclass
from pathlib import Path
from typing import Any

from benchmarks.cluster import Cluster, Running, cluster
from benchmarks.measured import megabytes, progress, settled
from gatewright.console.terminal import table
from gatewright.processes.memory import TRIM_SECONDS

PARTS = ("etcd", "kube-apiserver")
MOST_GROWTH = 1.25  # of the memory beside nothing else
ANNOTATIONS = 250_000  # bytes; the API server allows 256 KiB
POD = {"containers": [{"name": "a", "image": "a"}]}
SELECTED = {
    "selector": {"matchLabels": {"a": "b"}},
    "template": {"metadata": {"labels": {"a": "b"}}, "spec": POD},
}
NEVER: dict[str, Any] = {"template": {"spec": {**POD, "restartPolicy": "Never"}}}
PORTS = {"ports": [{"port": 80}]}
BACKEND = {"defaultBackend": {"service": {"name": "a", "port": {"number": 80}}}}
SPECS: dict[str, tuple[str, dict[str, Any]]] = {
    "configmaps": ("/api/v1", {}),
    "secrets": ("/api/v1", {}),
    "services": ("/api/v1", {"spec": PORTS}),
    "pods": ("/api/v1", {"spec": POD}),
    "deployments": ("/apis/apps/v1", {"spec": SELECTED}),
    "statefulsets": ("/apis/apps/v1", {"spec": SELECTED | {"serviceName": "a"}}),
    "jobs": ("/apis/batch/v1", {"spec": NEVER}),
    "ingresses": ("/apis/networking.k8s.io/v1", {"spec": BACKEND}),
}
OWN: dict[str, tuple[str, dict[str, Any]]] = {
    "webapps": ("example.com/v1", {"replicas": 1, "image": "nginx"}),
    "appconfigs": ("config.example.com/v1", {"config": {"a": "b"}, "environment": "dev"}),
    "postgresqls": ("database.example.com/v1", {"version": "16", "storage": "1Gi"}),
}
OWNERS = {"deployments": "webapps"}  # who controls such objects; others: a PostgreSQL
# Labels of the objects that caches select.
LABELS = {
    "app.kubernetes.io/name": "postgresql",
    "app.kubernetes.io/managed-by": "gatewright",
    "app.kubernetes.io/instance": "forged",
    "gatewright.io/backup": "forged",
}
KINDS = {"webapps": "WebApp", "appconfigs": "AppConfig", "postgresqls": "PostgreSQL"}


@dataclass(frozen=True)
class Row:
    """The memory of one controller, in megabytes."""

    beside: str
    foreign: float
    resident: float
    peak: float


def main() -> None:
    """Measure and print; exit with 1 if memory grows by more than a quarter."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--own", type=int, default=8, help="objects of each of Gatewright's kinds")
    parser.add_argument("--bytes", type=int, default=400_000, help="size of a foreign object")
    parser.add_argument("--json", type=Path, help="also write the rows to this file")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory, cluster(Path(directory), PARTS) as measured:
        rows = list(measure(measured, options.own, options.bytes))
    progress("")
    table([[str(cell) for cell in astuple(row)] for row in rows], HEADER)
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=2))
    if any(row.resident > MOST_GROWTH * rows[0].resident for row in rows):
        sys.exit(f"memory grew by more than {MOST_GROWTH - 1:.0%}")


def measure(cluster: Cluster, own: int, size: int) -> Iterator[Row]:
    """Yield a row for each controller."""
    cluster.plane.create_namespace("own")
    cluster.plane.create_namespace("others")
    for plural, (api_version, spec) in OWN.items():
        for number in range(own):
            create(cluster, f"/apis/{api_version}", "own", plural, own_object(plural, spec, number))
    with controller(cluster) as running:
        progress("beside nothing else")
        yield row("nothing else", 0, running)
        wanted = own * len(OWN) * 1_000_000
        total = fill(cluster, wanted, size)
        yield row("meanwhile", total, running)
    with controller(cluster) as running:
        progress("beside others' objects")
        yield row("others' objects", total, running)
        total += fill(cluster, wanted, size, forged=True)
        yield row("forged owners, meanwhile", total, running)
    with controller(cluster) as running:
        progress("beside others' objects with forged owners")
        yield row("forged owners", total, running)


def own_object(plural: str, spec: dict[str, Any], number: int) -> dict[str, Any]:
    """Return one of Gatewright's objects."""
    name = f"own-{number}"
    named = {"application": name} if plural == "appconfigs" else {}
    return {"kind": KINDS[plural], "metadata": {"name": name}, "spec": spec | named}


def fill(cluster: Cluster, wanted: int, size: int, *, forged: bool = False) -> int:
    """Create other people's objects of each kind; return their bytes.

    `forged` ones are in the namespace of Gatewright's objects, and name one as their controller.
    """
    total, namespace, about = 0, "own" if forged else "others", dict[str, Any]()
    for plural, (root, content) in SPECS.items():
        written = 0
        if forged:
            owner = owner_reference(cluster, OWNERS.get(plural, "postgresqls"))
            about = {"labels": LABELS, "ownerReferences": [owner]}
        while written < wanted:
            object = foreign(plural, content, size, written)
            object["metadata"] |= about
            written += len(json.dumps(object))
            create(cluster, root, namespace, plural, object)
            progress(f"filling {plural}", f"{written // 1_000_000} MB")
        total += written
    return total


def owner_reference(cluster: Cluster, plural: str) -> dict[str, Any]:
    """Return a reference to one of Gatewright's objects as the controller."""
    api_version, _ = OWN[plural]
    path = f"/apis/{api_version}/namespaces/own/{plural}/own-0"
    code, answer = cluster.api.request("GET", path, None)
    if code != 200:
        sys.exit(f"{path}: {code}")
    uid = json.loads(answer)["metadata"]["uid"]
    named = {"apiVersion": api_version, "kind": KINDS[plural], "name": "own-0", "uid": uid}
    return named | {"controller": True}


def foreign(plural: str, content: dict[str, Any], size: int, number: int) -> dict[str, Any]:
    """Return one of other people's objects."""
    metadata = {"name": f"foreign-{number}"}
    if plural == "configmaps":
        return {"metadata": metadata, "data": {"a": "x" * size}}
    if plural == "secrets":
        return {"metadata": metadata, "stringData": {"a": "x" * size}}
    return {"metadata": metadata | {"annotations": {"a": "x" * min(size, ANNOTATIONS)}}, **content}


def create(
    cluster: Cluster, root: str, namespace: str, plural: str, object: dict[str, Any]
) -> None:
    """Create one object."""
    api_version = root.removeprefix("/apis/").removeprefix("/api/")
    path = f"{root}/namespaces/{namespace}/{plural}"
    code, answer = cluster.api.request("POST", path, {"apiVersion": api_version, **object})
    if code != 201:
        sys.exit(f"{plural}: {code} {answer.decode()[:300]}")


def controller(cluster: Cluster) -> AbstractContextManager[Running]:
    """Run `gatewright controller` with all kinds, on all namespaces."""
    return cluster.running("controller", "--namespace", "default")


def row(beside: str, foreign: int, running: Running) -> Row:
    """Return the memory of a controller once it is idle."""
    settled(running.pid)
    time.sleep(TRIM_SECONDS + 2)  # by then the process has returned its free pages
    resident, peak = megabytes(running.pid), megabytes(running.pid, "VmHWM")
    return Row(beside, round(foreign / 1e6, 1), round(resident, 1), round(peak, 1))


HEADER = ("beside", "MB of others", "MB resident", "MB peak")

if __name__ == "__main__":
    main()
