"""Events: repetitions are written seldom, and reconciles do not wait for them."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from controller.runtime.events import EVENT, EventRecorder
from controller.runtime.plan import Event
from gatewright.testing.fake_apiserver import FakeApiServer
from kube.client import Client
from kube.resource import JsonObject
from tests.controller.runtime.conftest import NAMESPACE
from tests.controller.runtime.test_leader import Clock

THING: JsonObject = {
    "apiVersion": "test.example/v1",
    "kind": "Thing",
    "metadata": {"name": "thing", "namespace": NAMESPACE, "uid": "1", "resourceVersion": "7"},
}
FAILED = Event("ReconcileFailed", "no luck", "Warning")


@pytest.fixture
async def client(server: FakeApiServer) -> AsyncIterator[Client]:
    """A client of the fake API server."""
    async with Client(server.endpoint) as client:
        yield client


@pytest.fixture
def clock() -> Clock:
    """A clock that only the test moves."""
    return Clock()


@pytest.fixture
def recorder(client: Client, clock: Clock) -> EventRecorder:
    """A recorder that writes when the test advances it."""
    return EventRecorder(client, "controller-1", clock=clock)


async def written(server: FakeApiServer, recorder: EventRecorder) -> list[JsonObject]:
    """Write all recorded events, and return the stored ones."""
    async with asyncio.TaskGroup() as group:
        running = group.create_task(recorder.run())
        await recorder.flush()
        running.cancel()
    return server.list(EVENT)


async def test_the_names_of_an_objects_events_are_in_their_order(
    server: FakeApiServer, recorder: EventRecorder
) -> None:
    """`kubectl describe` shows them in the order of the API server's list, which is by name."""
    notes = [f"step {number}" for number in range(30)]
    for note in notes:
        recorder.record(THING, Event("Updated", note))
    events = await written(server, recorder)
    events.sort(key=lambda event: str(event["metadata"]["name"]))
    assert [event["note"] for event in events] == notes


async def test_an_event_names_its_object(server: FakeApiServer, recorder: EventRecorder) -> None:
    """The fields by which `kubectl describe` finds the event."""
    recorder.record(THING, FAILED)
    (event,) = await written(server, recorder)
    assert event["regarding"] == {
        "apiVersion": "test.example/v1",
        "kind": "Thing",
        "name": "thing",
        "namespace": NAMESPACE,
        "uid": "1",
        "resourceVersion": "7",
    }
    assert (event["type"], event["reason"], event["note"]) == (
        "Warning",
        "ReconcileFailed",
        "no luck",
    )
    assert event["reportingController"] == "gatewright.io/controller"


async def test_repetitions_are_a_series(
    server: FakeApiServer, recorder: EventRecorder, clock: Clock
) -> None:
    """One event, whose count is written at the first repetition and then every half hour.

    So `kubectl describe` always shows the event, which the API server deletes after an hour.
    """
    for _ in range(30):
        recorder.record(THING, FAILED)
        clock.now += 60
    await written(server, recorder)
    assert len(server.requests.writes) == 2
    clock.now += 60
    recorder.record(THING, FAILED)
    (event,) = await written(server, recorder)
    assert event["series"]["count"] == 31
    assert len(server.requests.writes) == 3


async def test_a_repeated_change_is_written_each_minute_at_most(
    server: FakeApiServer, recorder: EventRecorder, clock: Clock
) -> None:
    """`kubectl describe` shows that an object which was fought over is ready again."""
    ready = Event("Ready", "Thing is ready")
    for seconds in (0, 5, 20, 90):
        clock.now += seconds
        recorder.record(THING, ready)
        await written(server, recorder)
    (event,) = server.list(EVENT)
    assert event["series"]["count"] == 4
    assert len(server.requests.writes) == 3


async def test_a_series_whose_event_has_expired_is_a_new_event(
    server: FakeApiServer, recorder: EventRecorder
) -> None:
    """The API server deletes events after an hour."""
    recorder.record(THING, FAILED)
    (event,) = await written(server, recorder)
    server.delete(EVENT, event["metadata"]["name"], NAMESPACE)
    recorder.record(THING, FAILED)
    (again,) = await written(server, recorder)
    assert again["metadata"]["uid"] != event["metadata"]["uid"]


@pytest.mark.parametrize("end", ["-", ".", "-.-", "a"])
async def test_an_object_of_any_name_has_events(
    server: FakeApiServer, recorder: EventRecorder, end: str
) -> None:
    """A long name is shortened to a valid one."""
    name = f"{'a' * (220 - len(end))}{end}aaa"
    recorder.record({**THING, "metadata": {**THING["metadata"], "name": name}}, FAILED)
    (event,) = await written(server, recorder)
    prefix, _, random = event["metadata"]["name"].rpartition(".")
    assert prefix == name[:220].rstrip("-.")
    assert len(random) == 16


async def test_another_note_is_another_event(
    server: FakeApiServer, recorder: EventRecorder
) -> None:
    """Each problem has its event."""
    for event in (FAILED, replace(FAILED, note="no luck either"), FAILED):
        recorder.record(THING, event)
    told = await written(server, recorder)
    assert sorted(each["note"] for each in told) == ["no luck", "no luck either"]


async def test_after_a_pause_it_is_a_new_event(
    server: FakeApiServer, recorder: EventRecorder, clock: Clock
) -> None:
    """The same event much later is written again, since the problem was absent meanwhile."""
    recorder.record(THING, FAILED)
    clock.now += 400
    recorder.record(THING, FAILED)
    assert len(await written(server, recorder)) == 2


async def test_a_failed_event_is_sent_again_the_next_time(
    server: FakeApiServer, recorder: EventRecorder, clock: Clock
) -> None:
    """A failed event is no error; a repetition is reported even if the first event was lost."""
    server.fail(1, 500)
    recorder.record(THING, FAILED)
    assert await written(server, recorder) == []
    clock.now += 60
    recorder.record(THING, FAILED)
    assert [each["reason"] for each in await written(server, recorder)] == ["ReconcileFailed"]
