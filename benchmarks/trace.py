"""`python -m benchmarks.trace`: trace the calls of one reconcile, from event to status.

The traced WebApp is the second one, when all watches are open. It runs on the in-process API
server, whose own calls do not count, and prints for `kube` and `controller`: modules, functions,
calls (each step of a coroutine is one), and switches (calls to another module than the previous
call).
"""

import asyncio
import sys
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any

from prometheus_client import CollectorRegistry

from controller.reconcilers.webapp import WEBAPP
from controller.runtime.manager import Manager
from gatewright.testing import ApiServer

ROOT = Path(__file__).parents[1]
OURS = (f"{ROOT}/kube/", f"{ROOT}/controller/")
NOT_OURS = f"{ROOT}/gatewright/testing/fake_apiserver/"
NAMESPACE = "default"
SETTLED = 0.2  # seconds after which the work for the first WebApp is done


async def trace() -> list[tuple[str, str]]:
    """Return the module and the function of each call."""
    calls: list[tuple[str, str]] = []

    def note(frame: FrameType, event: str, _: Any) -> None:
        file = frame.f_code.co_filename
        if event == "call" and file.startswith(OURS) and not file.startswith(NOT_OURS):
            calls.append((file.removeprefix(f"{ROOT}/"), frame.f_code.co_qualname))

    async with ApiServer(WEBAPP) as server, asyncio.TaskGroup() as group:
        manager = Manager(server.endpoint, CollectorRegistry(), identity="trace")
        manager.add_kind(WEBAPP)
        stop, reported = asyncio.Event(), asyncio.Event()
        group.create_task(manager.run(stop))
        server.storage.listeners.append(
            lambda event: reported.set() if event.new and "status" in event.new else None
        )
        for name in ("first", "traced"):
            sys.setprofile(note if name == "traced" else None)
            spec = {"image": "nginx:1.21", "replicas": 3, "port": 80}
            server.create(
                WEBAPP.resource, {"metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec}
            )
            async with asyncio.timeout(10):
                await reported.wait()
            sys.setprofile(None)
            await asyncio.sleep(SETTLED)
            reported.clear()
        stop.set()
    return calls


def main() -> None:
    """Count, and print."""
    calls = asyncio.run(trace())
    modules = [module for module, _ in calls]
    switches = sum(before != after for before, after in pairwise(modules))
    print(
        f"{len(set(modules))} modules, {len(set(calls))} functions, {len(calls)} calls, "
        f"{switches} switches"
    )
    print("\n".join(sorted(set(modules))))


if __name__ == "__main__":
    main()
