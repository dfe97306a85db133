"""Two controllers and one lease on a real API server: one writes, the other takes over."""

import asyncio
import time
from dataclasses import replace

import pytest

from controller.reconcilers.webapp import WEBAPP
from controller.runtime.leader import LEASE, LeadershipLostError, LeaseSettings
from kube.client import Client
from tests.controller.conftest import Process, Start
from tests.controller.observer import Observer
from tests.controller.webapps import is_running, webapp
from tests.controlplane.audit import WRITES
from tests.controlplane.plane import ControlPlane
from tests.waiting import WITHIN

pytestmark = pytest.mark.controlplane


@pytest.fixture
def lease(namespace: str) -> LeaseSettings:
    """A lease that ends soon, and not because the machine is busy."""
    return LeaseSettings(namespace, "the-lock", duration=6, renew_deadline=5, retry_period=0.4)


@pytest.fixture
def long_lease(lease: LeaseSettings) -> LeaseSettings:
    """A lease too long to wait for: the next holder has it because it was released."""
    return replace(lease, duration=600, renew_deadline=300)


async def until_leading(process: Process) -> None:
    """Wait until a process leads."""
    assert process.manager.election is not None
    async with asyncio.timeout(WITHIN):
        await process.manager.election.leading.wait()


def times_of_writes(plane: ControlPlane, since: int, agent: str) -> list[str]:
    """The times of a process's writes, except those of the Lease."""
    return [
        event["requestReceivedTimestamp"]
        for event in plane.audit_events(since, verb=WRITES)
        if event["userAgent"] == agent
    ]


async def test_a_standby_writes_nothing_and_takes_over_at_once_when_the_leader_ends(
    client: Client,
    observer: Observer,
    controller: Start,
    long_lease: LeaseSettings,
    webapps_installed: ControlPlane,
) -> None:
    """A leader that ends releases the Lease; changes made meanwhile are not lost."""
    mark = await asyncio.to_thread(webapps_installed.audit_mark)
    async with controller(lease=long_lease) as first:
        await until_leading(first)
        async with controller(lease=long_lease) as second:
            await client.create(WEBAPP.resource, webapp(observer.namespace, "one"))
            await observer.until(WEBAPP.resource, "one", is_running)
            first.stop.set()
            await client.create(WEBAPP.resource, webapp(observer.namespace, "two"))
            await until_leading(second)
            await observer.until(WEBAPP.resource, "two", is_running)
            held = await client.get(LEASE, "the-lock", observer.namespace)
    assert held["spec"]["holderIdentity"] == second.agent
    assert held["spec"]["leaseTransitions"] == 1
    before = await asyncio.to_thread(times_of_writes, webapps_installed, mark, first.agent)
    after = await asyncio.to_thread(times_of_writes, webapps_installed, mark, second.agent)
    assert max(before) < min(after)


async def test_a_standby_takes_over_when_the_leader_dies(
    client: Client, observer: Observer, controller: Start, lease: LeaseSettings
) -> None:
    """The standby waits for a killed leader until its Lease expires."""
    async with controller(lease=lease) as first:
        await until_leading(first)
        async with controller(lease=lease) as second:
            died = time.monotonic()
            first.kill()
            await client.create(WEBAPP.resource, webapp(observer.namespace, "one"))
            await until_leading(second)
            waited = time.monotonic() - died
            await observer.until(WEBAPP.resource, "one", is_running)
    assert lease.renew_deadline < waited


async def test_the_released_lease_has_no_holder(
    observer: Observer, controller: Start, lease: LeaseSettings
) -> None:
    """A process that ends releases the lease."""
    async with controller(lease=lease) as process:
        await until_leading(process)
    released = await observer.until(
        LEASE, "the-lock", lambda each: not each["spec"].get("holderIdentity")
    )
    assert released["spec"]["leaseDurationSeconds"] == 1


async def test_a_leader_that_loses_its_lease_ends(
    client: Client, observer: Observer, controller: Start, lease: LeaseSettings
) -> None:
    """Somebody else's name in the lease ends the process with an error."""

    async def lead_until_taken() -> None:
        async with controller(lease=lease) as process:
            await until_leading(process)
            taken = {"holderIdentity": "somebody-else", "leaseDurationSeconds": 60}
            await client.patch(LEASE, "the-lock", {"spec": taken}, observer.namespace)
            await observer.until(LEASE, "never", lambda _: False)

    with pytest.raises(ExceptionGroup) as raised:
        await lead_until_taken()
    assert raised.group_contains(LeadershipLostError, match="somebody-else leads now")
