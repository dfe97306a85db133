"""No-op reconciles per second: objects are cached and up to date, and no request is sent.

`python -m benchmarks.passes KUBECONFIG NAMESPACE` prints it for the WebApps of a namespace, with
warm caches: the reconciles alone, and whole passes with queue, metrics and log lines. It reports
the Deployments as available first: the pods of those that are not would be looked up.
"""

import asyncio
import json
import sys
import time
from pathlib import Path

import uvloop
from prometheus_client import CollectorRegistry

from controller.reconcilers.resources import DEPLOYMENT
from controller.reconcilers.webapp import WEBAPP
from controller.runtime.manager import Manager
from controller.runtime.types import ReconcileRequest, Result
from gatewright.processes import logs
from kube.client import Client
from kube.credentials import load
from kube.endpoint import Endpoint

SECONDS = 3.0


async def measure(kubeconfig: Path, namespace: str) -> dict[str, int]:
    """Return reconciles per second of processor time, from the best round."""
    endpoint = await load(kubeconfig)
    await make_available(endpoint, namespace)
    runtime = Manager(endpoint, CollectorRegistry(), identity="benchmark", namespaces=[namespace])
    runtime.add_kind(WEBAPP)
    controller, stop = runtime.controllers[0], asyncio.Event()
    reconcile, requests, left, done = (
        controller.reconcile,
        list[ReconcileRequest](),
        set[ReconcileRequest](),
        asyncio.Event(),
    )

    async def counted(request: ReconcileRequest) -> Result:
        result = await reconcile(request)
        left.discard(request)
        if not left:
            done.set()
        return result

    async def reconciles() -> None:
        for request in requests:
            await reconcile(request)

    async def passes() -> None:
        done.clear()
        left.update(requests)
        for request in requests:
            controller.add(request)
        await done.wait()

    controller.reconcile = counted
    async with asyncio.TaskGroup() as group:
        group.create_task(runtime.run(stop))
        await controller.wait_synced()
        requests += [ReconcileRequest.of(key) for key in runtime.caches.of(WEBAPP.resource)]
        rates = {}
        for name, once in {"reconciles": reconciles, "passes": passes}.items():
            await once()  # warm up
            began, fastest = time.process_time(), SECONDS
            while (started := time.process_time()) - began < SECONDS:
                await once()
                fastest = min(fastest, time.process_time() - started)
            rates[name] = round(len(requests) / fastest)
        stop.set()
    return rates


async def make_available(endpoint: Endpoint, namespace: str) -> None:
    """Write the statuses of Deployments whose pods are all ready, as their controller would."""
    async with Client(endpoint) as client:
        async for deployment in client.list(DEPLOYMENT, namespace):
            metadata, replicas = deployment["metadata"], deployment["spec"]["replicas"]
            counts = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
            status = {
                "observedGeneration": metadata["generation"],
                **dict.fromkeys(counts, replicas),
                "conditions": [{"type": "Available", "status": "True", "reason": "Ready"}],
            }
            await client.patch(
                DEPLOYMENT, metadata["name"], {"status": status}, namespace, subresource="status"
            )


if __name__ == "__main__":
    logs.install(text=False)
    print(json.dumps(uvloop.run(measure(Path(sys.argv[1]), sys.argv[2]))))
