"""`python -m benchmarks.trace`: trace the calls of one reconcile, and of one check of a file.

The reconcile is traced from event to status, for the second of two WebApps, when all watches are
open. It runs on the in-process API server, whose own calls do not count: only those in `kube` and
`controller`. The check is `gatewright check --policies production -n production docs/shop.yaml`,
after all imports.

Printed are modules, functions, calls (each step of a coroutine is one), and switches (calls to
another module than the previous call).
"""

import asyncio
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import redirect_stdout, suppress
from io import StringIO
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any

from prometheus_client import CollectorRegistry

from controller.reconcilers.webapp import WEBAPP
from controller.runtime.manager import Manager
from gatewright.commands.check import command
from gatewright.testing import ApiServer
from kube.resource import JsonObject

ROOT = Path(__file__).parents[1]
PACKAGES = ("gatewright", "controller", "webhook", "config", "kube", "certs")
INLINED = ("<listcomp>", "<dictcomp>", "<setcomp>")  # from Python 3.12 on these are no calls
NAMESPACE = "default"
SETTLED = 0.2  # seconds after which the work for the first WebApp is done

Call = tuple[str, str]  # module and function
Profile = Callable[[FrameType, str, Any], None]


def noted(calls: list[Call], folders: Iterable[str]) -> Profile:
    """Return a profiler that adds each call of a function in these folders to `calls`."""
    ours = tuple(folders)

    def note(frame: FrameType, event: str, _: Any) -> None:
        file, name = frame.f_code.co_filename, frame.f_code.co_qualname
        if event == "call" and file.startswith(ours) and not name.endswith(INLINED):
            calls.append((file.removeprefix(f"{ROOT}/"), name))

    return note


def trace_check() -> list[Call]:
    """Return the calls of a check of one file."""
    calls: list[Call] = []
    arguments = ["--policies", "production", "-n", "production", str(ROOT / "docs/shop.yaml")]
    for profile in (None, noted(calls, [f"{ROOT}/{package}/" for package in PACKAGES])):
        with suppress(SystemExit), redirect_stdout(StringIO()):
            sys.setprofile(profile)
            command(arguments)
        sys.setprofile(None)
    return calls


async def trace_reconcile() -> list[Call]:
    """Return the calls of a reconcile of a new WebApp."""
    calls: list[Call] = []
    note = noted(calls, [f"{ROOT}/kube/", f"{ROOT}/controller/"])
    async with ApiServer(WEBAPP) as server, asyncio.TaskGroup() as group:
        manager = Manager(server.endpoint, CollectorRegistry(), identity="trace")
        manager.add_kind(WEBAPP)
        stop, reported = asyncio.Event(), asyncio.Event()
        group.create_task(manager.run(stop))
        server.storage.listeners.append(
            lambda event: reported.set() if has_conditions(event.new) else None
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


def has_conditions(object: JsonObject | None) -> bool:
    """Return whether the controller has written the object's status; the API has defaults in it."""
    return object is not None and "conditions" in object.get("status", {})


def count(calls: Sequence[Call]) -> dict[str, int]:
    """Return the numbers of modules, functions, calls and switches."""
    modules = [module for module, _ in calls]
    return {
        "modules": len(set(modules)),
        "functions": len(set(calls)),
        "calls": len(calls),
        "switches": sum(before != after for before, after in pairwise(modules)),
    }


def main() -> None:
    """Count, and print."""
    for name, calls in (("reconcile", asyncio.run(trace_reconcile())), ("check", trace_check())):
        print(f"{name}:", ", ".join(f"{number:,} {what}" for what, number in count(calls).items()))
        print("\n".join(f"  {module}" for module in sorted({module for module, _ in calls})))


if __name__ == "__main__":
    main()
