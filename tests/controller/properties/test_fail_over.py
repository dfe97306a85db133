"""Three controller processes, one Lease: whatever happens to the leader, two never write at the same time."""

import asyncio
import signal
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from controller.reconcilers.webapp import WEBAPP
from controller.runtime.leader import LEASE, holder_of
from kube.client import Client
from kube.errors import NotFound
from tests.controller.observer import observing
from tests.controller.webapps import webapp
from tests.controlplane.audit import WRITES
from tests.controlplane.plane import ControlPlane
from tests.fakes.proxy import Proxy
from tests.gatewright.started import Gatewright
from tests.waiting import eventually

pytestmark = pytest.mark.controlplane("etcd", "kube-apiserver")

LOCK = "gatewright-controller-lock"
DURATION = 3.0
ONLY = ("--kinds", "webapp", "--namespaces")
LEASE_TIMES = (
    "--lease-duration",
    f"{DURATION:g}s",
    "--renew-deadline",
    "2s",
    "--retry-period",
    "0.4s",
)
TAKEN_OVER_WITHIN = DURATION + 3.0  # a standby looks every 0.4 s, and this machine may be busy
RELEASED_WITHIN = DURATION / 2  # much sooner than an unreleased lease


class Replicas:
    """Controller processes, each with a separate user, so that the audit log distinguishes them."""

    def __init__(self, plane: ControlPlane, place: str, client: Client, directory: Path) -> None:
        self.plane = plane
        self.place = place
        self.client = client
        self.directory = directory
        self.processes: dict[str, Gatewright] = {}

    async def start(self, user: str, through: Proxy | None = None) -> None:
        """Start a controller, with or without a proxy to the API server."""
        kubeconfig = self.plane.certificate_kubeconfig(user, "system:masters", namespace=self.place)
        if through is not None:
            port = f":{urlsplit(self.plane.url).port}"
            kubeconfig.write_text(kubeconfig.read_text().replace(port, f":{through.port}"))
        directory = self.directory / user
        directory.mkdir()
        process = Gatewright(
            self.plane,
            directory,
            "controller",
            *ONLY,
            self.place,
            *LEASE_TIMES,
            kubeconfig=kubeconfig,
        )
        self.processes[user] = process
        await asyncio.to_thread(process.start)

    async def leader(self, other_than: str = "") -> tuple[str, datetime]:
        """Wait for a leader other than the previous one.

        Return its user, and the time at which it acquired the Lease.
        """
        found: list[tuple[str, datetime]] = []
        passed_over = ""

        async def is_found() -> bool:
            nonlocal passed_over
            with suppress(NotFound):
                held = await self.client.get(LEASE, LOCK, self.place)
                if holder_of(held) not in ("", passed_over):
                    user = self.user(holder_of(held))
                    if user not in ("", other_than):
                        found.append((user, datetime.fromisoformat(held["spec"]["acquireTime"])))
                    passed_over = holder_of(held) if user else ""
            return bool(found)

        await eventually(is_found, within=30)
        return found[0]

    def user(self, identity: str) -> str:
        """Return the user of the process that reports to be the leader of this name; "" if none does yet."""
        for user, process in self.processes.items():
            if any(
                line["message"] == "leading" and line["identity"] == identity
                for line in process.logged()
            ):
                return user
        return ""

    async def until_at_work(self) -> None:
        """Wait until a new child is created."""
        name = f"probe-{time.monotonic_ns()}"
        await self.client.create(WEBAPP.resource, webapp(self.place, name))
        async with observing(self.client, self.place, [WEBAPP.resource]) as observer:
            await observer.until(
                WEBAPP.resource,
                name,
                lambda each: "conditions" in each.get("status", {}),
                within=150,  # objects of the initial list wait up to 60 s behind new ones
            )

    async def until_ended(self, user: str) -> None:
        """Wait until a process ends without a signal."""
        process = self.processes[user]
        await asyncio.to_thread(process.until, "ended", lambda: process.process.died)

    def writers(self, mark: int) -> list[str]:
        """The users who wrote anything except the Lease since a mark, in order, without repetitions in a row."""
        events = self.plane.audit_events(mark, verb=WRITES)
        written = [
            (event["requestReceivedTimestamp"], event["user"]["username"])
            for event in events
            if event["user"]["username"] in self.processes
            and event["objectRef"]["resource"] != "leases"
        ]
        return [user for user, _ in groupby(user for _, user in sorted(written))]


@asynccontextmanager
async def work_coming_in(client: Client, place: str) -> AsyncIterator[Callable[[], int]]:
    """Create WebApps continuously, so that every leader has something to write."""
    made = 0

    async def create() -> None:
        nonlocal made
        while True:
            await client.create(WEBAPP.resource, webapp(place, f"shop-{made}"))
            made += 1
            await asyncio.sleep(0.05)

    async with asyncio.TaskGroup() as group:
        task = group.create_task(create())
        yield lambda: made
        task.cancel()


async def test_never_do_two_write(
    plane: ControlPlane, place: str, user: Client, tmp_path: Path
) -> None:
    """However the leader fails, the next one takes over in time, and two never write."""
    target = urlsplit(plane.url)
    async with Proxy(target.hostname or "", target.port or 0) as proxy:
        replicas = Replicas(plane, place, user, tmp_path)
        mark = await asyncio.to_thread(plane.audit_mark)
        try:
            await replicas.start("cut-off", through=proxy)
            assert (await replicas.leader())[0] == "cut-off"
            await replicas.until_at_work()
            await asyncio.gather(*(replicas.start(f"standby-{number}") for number in range(4)))
            async with work_coming_in(user, place) as made:
                order = await go_through_it(replicas, proxy)
            await until_all_are_made(user, place, made())
        finally:
            await asyncio.gather(
                *(asyncio.to_thread(each.close) for each in replicas.processes.values())
            )
        assert await asyncio.to_thread(replicas.writers, mark) == order


async def go_through_it(replicas: Replicas, proxy: Proxy) -> list[str]:
    """Disturb one leader after the other in each way; return the leaders in order."""
    order = ["cut-off"]

    async def next_leader(within: float) -> str:
        began = datetime.now(UTC)
        user, since = await replicas.leader(order[-1])
        assert (since - began).total_seconds() < within
        order.append(user)
        await replicas.until_at_work()
        return user

    proxy.partition()  # packets are dropped silently
    killed = await next_leader(TAKEN_OVER_WITHIN)
    await replicas.until_ended("cut-off")
    proxy.cut()
    replicas.processes[killed].kill()
    frozen = await next_leader(TAKEN_OVER_WITHIN)
    replicas.processes[frozen].process.signal(signal.SIGSTOP)
    deprived = await next_leader(TAKEN_OVER_WITHIN)
    replicas.processes[frozen].process.signal(signal.SIGCONT)
    await replicas.until_ended(frozen)
    await replicas.client.delete(LEASE, LOCK, replicas.place)
    assert (await replicas.leader())[0] == deprived
    ended = replicas.processes[deprived]
    assert await asyncio.to_thread(ended.end) == 0  # in the middle of its work
    assert ended.tracebacks() == []
    assert "nclosed" not in ended.process.log.read_text()
    await next_leader(RELEASED_WITHIN)
    assert len(set(order)) == 5
    return order


async def until_all_are_made(client: Client, place: str, count: int) -> None:
    """Wait until every WebApp has its children, so that no event was lost."""
    async with observing(client, place, [WEBAPP.resource]) as observer:
        for number in range(count):
            await observer.until(
                WEBAPP.resource, f"shop-{number}", lambda each: bool(each.get("status")), within=60
            )
