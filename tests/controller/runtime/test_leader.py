"""Leader election on a fake API server, with clocks that only the test moves."""

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime, timedelta, timezone

import pytest

from controller.runtime.leader import (
    LEASE,
    Election,
    LeadershipLostError,
    LeaseSettings,
    NotLeadingError,
)
from gatewright.testing.fake_apiserver import FakeApiServer
from kube.client import Client
from kube.resource import JsonObject
from tests.controller.runtime.clock import Clock
from tests.controller.runtime.conftest import NAMESPACE
from tests.waiting import WITHIN

QUICK = LeaseSettings(NAMESPACE, "lock", duration=15, renew_deadline=10, retry_period=0.001)


@pytest.fixture
def clock() -> Clock:
    """The monotonic clock of everybody."""
    return Clock()


@pytest.fixture
async def client(server: FakeApiServer) -> AsyncIterator[Client]:
    """A client without a gate, as the election needs it."""
    async with Client(server.endpoint) as client:
        yield client


def election(client: Client, clock: Clock, identity: str = "one") -> Election:
    """A candidate whose wall clock is in another time zone."""
    east = timezone(timedelta(hours=5))
    return Election(
        client, QUICK, identity, clock=clock, now=lambda: datetime(2026, 1, 1, 5, tzinfo=east)
    )


def lease(server: FakeApiServer) -> JsonObject:
    """The stored lease."""
    stored = server.get(LEASE, "lock", NAMESPACE)
    assert stored is not None
    return stored["spec"]  # type: ignore[no-any-return]


async def test_the_first_candidate_leads(
    server: FakeApiServer, client: Client, clock: Clock
) -> None:
    """The Lease has the holder, the time (in UTC, with microseconds) and the duration."""
    one = election(client, clock)
    await one.campaign()
    one.check()
    assert lease(server) == {
        "holderIdentity": "one",
        "leaseDurationSeconds": 15,
        "acquireTime": "2026-01-01T00:00:00.000000Z",
        "renewTime": "2026-01-01T00:00:00.000000Z",
        "leaseTransitions": 0,
    }


async def test_a_process_that_does_not_lead_cannot_write(client: Client, clock: Clock) -> None:
    """The gate is closed until the election is won."""
    with pytest.raises(NotLeadingError):
        election(client, clock).check()


async def test_the_gate_closes_before_another_candidate_may_lead(
    client: Client, clock: Clock
) -> None:
    """A process that was stopped, and wakes, cannot write before it has renewed."""
    one = election(client, clock)
    await one.campaign()
    clock.now += 9.9
    one.check()
    clock.now += 0.1
    with pytest.raises(NotLeadingError):
        one.check()


async def test_a_lease_is_respected_until_it_did_not_change_for_its_duration(
    server: FakeApiServer, client: Client, clock: Clock
) -> None:
    """Other people's clocks are never compared with ours: only how long we saw no change."""
    await election(client, clock).campaign()
    two = election(client, clock, "two")
    assert await two._try() is False
    clock.now += 14.9
    assert await two._try() is False
    server.change(LEASE, "lock", {"spec": {"renewTime": "2020-01-01T00:00:00.000000Z"}}, NAMESPACE)
    clock.now += 0.2
    assert await two._try() is False
    clock.now += 15
    assert await two._try() is True
    assert (lease(server)["holderIdentity"], lease(server)["leaseTransitions"]) == ("two", 1)


async def test_a_standby_is_there_when_the_lease_ends(client: Client, clock: Clock) -> None:
    """It looks after a retry period at the latest: 17 seconds after a kill, and 2 after a release, it leads."""
    await election(client, clock).campaign()
    two = Election(client, LeaseSettings(NAMESPACE, "lock"), "two", clock=clock)
    assert await two._try() is False
    assert two.pause() == 2
    clock.now += 14.5
    assert two.pause() == 0.5
    clock.now += 0.5
    assert await two._try() is True


async def test_renewing_takes_one_request(
    server: FakeApiServer, client: Client, clock: Clock
) -> None:
    """A leader remembers the Lease that it wrote last."""
    one = election(client, clock)
    await one.campaign()
    server.requests.clear()
    assert await one._try() is True
    assert [each.method for each in server.requests.log] == ["PUT"]


async def test_the_leader_recreates_a_deleted_lease(
    server: FakeApiServer, client: Client, clock: Clock
) -> None:
    """The leader recreates its Lease and stays the leader."""
    one = election(client, clock)
    await one.campaign()
    server.delete(LEASE, "lock", NAMESPACE)
    assert await one._try() is True
    assert lease(server)["holderIdentity"] == "one"


async def test_a_deleted_lease_is_respected_until_it_would_have_expired(
    server: FakeApiServer, client: Client, clock: Clock
) -> None:
    """A candidate that has observed it waits until it would have expired: its holder may still be writing."""
    one, two = election(client, clock), election(client, clock, "two")
    await one.campaign()
    assert await two._try() is False
    clock.now += 15
    assert await one._try() is True
    server.delete(LEASE, "lock", NAMESPACE)
    assert await two._try() is False
    clock.now += 9.9
    one.check()
    assert await two._try() is False
    clock.now += 5.1
    assert await two._try() is True


@pytest.mark.parametrize("hours", [-2, 2])
async def test_a_wrong_wall_clock_makes_no_candidate_lead(
    server: FakeApiServer, client: Client, clock: Clock, hours: int
) -> None:
    """The holder's times are never compared with the own clock, whether they are early or late."""
    wrong = datetime(2026, 1, 1, tzinfo=timezone(timedelta(hours=hours)))
    one = Election(
        client, QUICK, "one", clock=clock, now=lambda: wrong + timedelta(seconds=clock())
    )
    await one.campaign()
    two = election(client, clock, "two")
    assert await two._try() is False
    clock.now += 9
    assert await one._try() is True
    assert await two._try() is False
    clock.now += 14.9
    assert await two._try() is False
    clock.now += 0.1
    assert await two._try() is True


async def test_a_leader_outlives_failures_shorter_than_the_deadline(
    server: FakeApiServer, client: Client, clock: Clock
) -> None:
    """A short outage of the API server does not change the leader."""
    one = election(client, clock)
    await one.campaign()
    server.fail(3, 503)
    async with asyncio.timeout(WITHIN), asyncio.TaskGroup() as group:
        holding = group.create_task(one.hold())
        await server.requests.until(
            lambda requests: sum(each.code == 200 for each in requests.writes) > 0
        )
        one.check()
        holding.cancel()
    assert [each.code for each in server.requests.writes[:5]] == [201, 503, 503, 503, 200]


async def test_a_leader_that_cannot_renew_in_time_gives_up(
    server: FakeApiServer, client: Client, clock: Clock
) -> None:
    """Losing the lease ends `hold` with an error, and the gate is closed."""
    one = election(client, clock)
    await one.campaign()
    assert one.leading.is_set()
    server.fail(1000, 503)
    assert not await one._try()
    clock.now += 10
    with pytest.raises(LeadershipLostError, match=r"lock was not renewed in time: .*503"):
        await one.hold()
    with pytest.raises(NotLeadingError):
        one.check()
    assert not one.leading.is_set()


async def test_a_leader_that_did_not_run_says_so(client: Client, clock: Clock) -> None:
    """The cause is not the API server: the process was suspended, or its event loop was kept."""
    one = election(client, clock)
    await one.campaign()
    holding = asyncio.create_task(one.hold())
    await asyncio.sleep(0)  # it waits for the next renewal
    clock.now += 12
    with pytest.raises(LeadershipLostError) as raised:
        await holding
    assert str(raised.value) == (
        "the lease lock was not renewed in time: this process did not run for 12 s"
    )


async def test_a_leader_sees_that_another_leads(
    server: FakeApiServer, client: Client, clock: Clock
) -> None:
    """It does not fight for the lease."""
    one = election(client, clock)
    await one.campaign()
    server.change(LEASE, "lock", {"spec": {"holderIdentity": "two"}}, NAMESPACE)
    with pytest.raises(LeadershipLostError, match="two leads now"):
        await one.hold()


async def test_a_released_lease_is_free_at_once(
    server: FakeApiServer, client: Client, clock: Clock
) -> None:
    """A process that ends releases the lease."""
    one = election(client, clock)
    await one.campaign()
    await one.release()
    assert lease(server).get("holderIdentity") is None
    with pytest.raises(NotLeadingError):
        one.check()
    assert await election(client, clock, "two")._try() is True


async def test_a_lease_is_released_even_during_a_renewal(
    server: FakeApiServer, client: Client, clock: Clock
) -> None:
    """The write succeeded although its response timed out; a lease of another holder is not released."""
    one = election(client, clock)
    await one.campaign()
    server.change(LEASE, "lock", {"spec": {"renewTime": "2026-01-01T00:00:02.000000Z"}}, NAMESPACE)
    await one.release()
    assert lease(server).get("holderIdentity") is None
    two = election(client, clock, "two")
    await two.campaign()
    server.change(LEASE, "lock", {"spec": {"holderIdentity": "three"}}, NAMESPACE)
    await two.release()
    assert lease(server)["holderIdentity"] == "three"


async def test_of_two_that_try_at_once_one_wins(client: Client, clock: Clock) -> None:
    """The API server decides by the version of the lease."""
    candidates = [election(client, clock, identity) for identity in ("one", "two", "three")]
    won = await asyncio.gather(*(each._try() for each in candidates))
    assert sorted(won) == [False, False, True]


@pytest.mark.parametrize("times", [(10, 10, 2), (15, 2, 2), (15, 10, 0)])
def test_times_at_which_two_could_lead_are_refused(times: tuple[float, float, float]) -> None:
    """The lease must last longer than a leader tries to renew it."""
    with pytest.raises(ValueError, match="leader election: leaseDuration"):
        LeaseSettings(NAMESPACE, "lock", *times)
