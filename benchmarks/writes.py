"""The least that a controller on this client could spend: send requests, decode answers.

`python -m benchmarks.writes webapps URL CA TOKEN NAMESPACE COUNT PACE` creates WebApps, and
`children` writes a Deployment, a Service and a status for each, like a controller, but only by
`kube.transport`, without caches and watches. It prints the elapsed seconds and the seconds of
processor time.
"""

import asyncio
import json
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import orjson
import uvloop

from kube.endpoint import Endpoint, static_token, tls
from kube.transport import Transport

IN_FLIGHT = 5  # the number of a controller's workers per kind
APPLY, JSON = "application/apply-patch+yaml", "application/json"
QUERY = "?fieldManager=floor"

Write = tuple[str, str, str, dict[str, Any]]


def webapps(namespace: str, count: int) -> Iterator[list[Write]]:
    """Yield the request that creates each WebApp."""
    for number in range(count):
        webapp = {
            "apiVersion": "example.com/v1",
            "kind": "WebApp",
            "metadata": {"name": f"shop-{number}"},
            "spec": {"replicas": 1, "image": "nginx:1.29", "port": 80},
        }
        yield [("POST", f"/apis/example.com/v1/namespaces/{namespace}/webapps", JSON, webapp)]


def children(namespace: str, count: int) -> Iterator[list[Write]]:
    """Yield the requests that write the children and the status of each WebApp."""
    resources = {
        "limits": {"cpu": "500m", "memory": "512Mi"},
        "requests": {"cpu": "100m", "memory": "128Mi"},
    }
    for number in range(count):
        name = f"shop-{number}"
        labels, metadata = {"app": name}, {"name": name, "labels": {"app": name}}
        container = {
            "name": "webapp",
            "image": "nginx:1.29",
            "ports": [{"containerPort": 80}],
            "resources": resources,
        }
        template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
        deployment = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
        service = {"selector": labels, "ports": [{"name": "http", "port": 80, "targetPort": 80}]}
        ready = {
            "type": "Ready",
            "status": "False",
            "reason": "Progressing",
            "message": "waiting for deployment",
            "observedGeneration": 1,
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        status = {"phase": "Deploying", "replicas": 1, "readyReplicas": 0, "conditions": [ready]}
        kinds = {"Deployment": "apps/v1", "Service": "v1", "WebApp": "example.com/v1"}
        of = {
            kind: {"apiVersion": version, "kind": kind, "metadata": metadata}
            for kind, version in kinds.items()
        }
        where = f"namespaces/{namespace}"
        yield [
            (
                "PATCH",
                f"/apis/apps/v1/{where}/deployments/{name}{QUERY}",
                APPLY,
                of["Deployment"] | {"spec": deployment},
            ),
            (
                "PATCH",
                f"/api/v1/{where}/services/{name}{QUERY}",
                APPLY,
                of["Service"] | {"spec": service},
            ),
            (
                "PATCH",
                f"/apis/example.com/v1/{where}/webapps/{name}/status{QUERY}",
                APPLY,
                {
                    "apiVersion": "example.com/v1",
                    "kind": "WebApp",
                    "metadata": {"name": name},
                    "status": status,
                },
            ),
        ]


async def send(
    endpoint: Endpoint, groups: Iterable[list[Write]], pace: float
) -> tuple[float, float]:
    """Send groups of writes, each group in order.

    Return the elapsed seconds, and the seconds of processor time.

    With a `pace`, the groups start one after the other, this many seconds apart.
    """
    waiting = iter(groups)
    async with Transport(endpoint, user_agent="floor", timeout=60) as transport:

        async def worker() -> None:
            for group in waiting:
                for method, path, content_type, body in group:
                    await transport.request(
                        method, path, body=orjson.dumps(body), content_type=content_type
                    )
                if pace:
                    await asyncio.sleep(pace)

        started, used = time.perf_counter(), time.process_time()
        async with asyncio.TaskGroup() as tasks:
            for _ in range(1 if pace else IN_FLIGHT):
                tasks.create_task(worker())
        return time.perf_counter() - started, time.process_time() - used


if __name__ == "__main__":
    what, url, ca, token, namespace, count, pace = sys.argv[1:]
    groups = {"webapps": webapps, "children": children}[what](namespace, int(count))
    endpoint = Endpoint(
        url, ssl=tls(ca, authorities=Path(ca).read_bytes()), authorization=static_token(token)
    )
    seconds, cpu = uvloop.run(send(endpoint, groups, float(pace)))
    print(json.dumps({"seconds": round(seconds, 2), "cpu": round(cpu, 2)}))
