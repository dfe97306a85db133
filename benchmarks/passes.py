"""No-op reconciles per second: objects are cached and up to date, and no request is sent.

`python -m benchmarks.passes KUBECONFIG NAMESPACE` prints it for the WebApps of a namespace, with
warm caches: the reconciles alone, and whole passes with queue, metrics and log lines.
"""

import asyncio
import json
import sys
import time
from pathlib import Path

import uvloop
from prometheus_client import CollectorRegistry

from controller.reconcilers.webapp import WEBAPP
from controller.runtime.manager import Manager
from controller.runtime.types import ReconcileRequest, Result
from gatewright.processes import logs
from kube.credentials import load

SECONDS = 3.0


async def measure(kubeconfig: Path, namespace: str) -> dict[str, int]:
    """Return reconciles per second of processor time, from the best round."""
    runtime = Manager(
        await load(kubeconfig), CollectorRegistry(), identity="benchmark", namespaces=[namespace]
    )
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
        await controller.synced()
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


if __name__ == "__main__":
    logs.install(text=False)
    print(json.dumps(uvloop.run(measure(Path(sys.argv[1]), sys.argv[2]))))
