"""Every kind on a real control plane: after convergence, neither a full resync nor a restart writes anything."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import yaml
from prometheus_client import CollectorRegistry

from controller.reconcilers import planned_kinds
from controller.runtime.manager import Manager
from controller.runtime.types import ReconcileRequest
from kube import credentials
from tests.controlplane.audit import WRITES
from tests.controlplane.plane import ControlPlane

pytestmark = pytest.mark.controlplane("kube-controller-manager", "kube-scheduler", "hollow-kubelet")

CONFIG = Path(__file__).parents[3] / "config"
SAMPLES = sorted((CONFIG / "samples").glob("*.yaml"))
QUIET = 1.0


class Reconciled:
    """A process with all kinds, which knows when each object has been looked at."""

    def __init__(self, manager: Manager) -> None:
        self.manager = manager

    @property
    def count(self) -> float:
        """How many reconciles have ended."""
        samples = [
            sample
            for metric in self.manager.metrics.registry.collect()
            for sample in metric.samples
        ]
        return sum(
            sample.value
            for sample in samples
            if sample.name == "controller_runtime_reconcile_total"
        )

    async def until_quiet(self, reconciles: float) -> None:
        """Wait until this many reconciles have ended, and no other one ends for a second."""
        async with asyncio.timeout(60):
            before = -1.0
            while before != self.count or self.count < reconciles:
                before = self.count
                await asyncio.sleep(QUIET)

    def look_again(self) -> int:
        """Look at every object again, as the periodic pass does; return how many there are."""
        keys = [(each, key) for each in self.manager.controllers for key in each.caches[0]]
        for controller, key in keys:
            controller.add(ReconcileRequest.of(key))
        return len(keys)


@asynccontextmanager
async def all_kinds(plane: ControlPlane, namespace: str, agent: str) -> AsyncIterator[Reconciled]:
    """Run the controllers of all kinds, in one namespace."""
    endpoint = await credentials.load(plane.kubeconfig, environment={})
    manager = Manager(
        endpoint, CollectorRegistry(), identity=agent, namespaces=[namespace], user_agent=agent
    )
    for kind in planned_kinds():
        manager.add_kind(kind, settings={"registry": ""})
    stop = asyncio.Event()
    async with asyncio.timeout(240), asyncio.TaskGroup() as group:
        group.create_task(manager.run(stop))
        try:
            await manager.caches.wait_synced()
            yield Reconciled(manager)
        finally:
            stop.set()


async def test_once_all_are_ready_nothing_is_written(
    control_plane: ControlPlane, namespace: str
) -> None:
    """All samples become ready; then neither a full pass nor a restart sends any write."""

    async def kubectl(*arguments: str) -> None:
        await asyncio.to_thread(control_plane.kubectl, *arguments)

    def writes(since: int, agent: str) -> list[str]:
        return [
            f"{audited['verb']} {audited['requestURI']}"
            for audited in control_plane.audit_events(since, verb=WRITES)
            if audited["userAgent"] == agent and audited["objectRef"]["resource"] != "events"
        ]

    await kubectl("apply", "--server-side", "-f", str(CONFIG / "crd/bases"))
    await kubectl("wait", "--for=condition=Established", *(f"crd/{name}" for name in crds()))
    beginning = await asyncio.to_thread(control_plane.audit_mark)
    async with all_kinds(control_plane, namespace, "the-first-process") as process:
        await kubectl("apply", "-n", namespace, *(f"--filename={sample}" for sample in SAMPLES))
        await kubectl(
            "wait", "-n", namespace, "--for=condition=Ready", "--timeout=90s", *resources()
        )
        await process.until_quiet(0)
        mark = await asyncio.to_thread(control_plane.audit_mark)
        assert len(await asyncio.to_thread(writes, beginning, "the-first-process")) > 2 * len(
            resources()
        )
        await process.until_quiet(process.count + process.look_again())
        assert await asyncio.to_thread(writes, mark, "the-first-process") == []
    async with all_kinds(control_plane, namespace, "the-second-process") as process:
        await process.until_quiet(len(resources()))
    assert await asyncio.to_thread(writes, mark, "the-second-process") == []


def crds() -> list[str]:
    """The names of all CRDs."""
    return [
        yaml.safe_load(path.read_text())["metadata"]["name"]
        for path in (CONFIG / "crd/bases").glob("*.yaml")
    ]


def resources() -> list[str]:
    """The custom resources of all samples, as kubectl names them."""
    objects = [each for sample in SAMPLES for each in yaml.safe_load_all(sample.read_text())]
    kinds = {kind.resource.kind for kind in planned_kinds()}
    return [
        f"{object['kind'].lower()}/{object['metadata']['name']}"
        for object in objects
        if object["kind"] in kinds
    ]
