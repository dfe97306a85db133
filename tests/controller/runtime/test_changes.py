"""Normal events: what changed in the children, and that an idle object has none."""

import pytest

from controller.runtime.changes import WrittenChild, changed_fields, describe_update, events_of
from controller.runtime.events import EVENT
from controller.runtime.plan import Event
from kube.resource import JsonObject
from tests.controller.runtime.conftest import CONFIGMAP, NAMESPACE, Running, Things
from tests.controller.runtime.test_reconciler import single


def told(things: Things) -> list[str]:
    """The events about the Thing: type, reason and note."""
    return sorted(
        f"{event['type']} {event['reason']}: {event['note']}"
        for event in things.server.list(EVENT)
        if event["regarding"]["name"] == "thing"
    )


async def test_a_healthy_life_is_told(running: Running) -> None:
    """Created, ready, updated, restored: an event each, with the fields and the other writer."""
    async with running(single) as things:
        things.create()
        await things.until_ready()
        await things.until_told("Ready")
        things.server.change(things.resource, "thing", {"spec": {"size": 2}}, NAMESPACE)
        await things.until_told("Updated")
        things.server.apply(
            CONFIGMAP,
            {"metadata": {"name": "thing", "namespace": NAMESPACE}, "data": {"size": "9"}},
            "somebody",
        )
        await things.until_told("Restored")
        await things.until_quiet()
        assert told(things) == [
            "Normal Created: Created ConfigMap thing",
            "Normal Ready: Thing is ready",
            "Normal Restored: Restored ConfigMap thing: data.size, changed by somebody",
            "Normal Updated: Updated ConfigMap thing: data.size",
        ]


async def test_an_idle_object_has_no_events(running: Running) -> None:
    """Neither a full pass nor a restart tells anything again."""
    async with running(single) as things:
        things.create()
        await things.until_told("Ready")
        things.manager.controllers[0].resync()
        await things.until_quiet()
        before = told(things)
    async with running(single) as things:
        await things.until_quiet()
    assert told(things) == before


async def test_repeated_repairs_are_one_series(running: Running) -> None:
    """The second one adds a count to the first one's event."""
    async with running(single) as things:
        things.create()
        await things.until_ready()
        for _ in range(3):
            things.server.apply(
                CONFIGMAP,
                {"metadata": {"name": "thing", "namespace": NAMESPACE}, "data": {"size": "9"}},
                "somebody",
            )
            await things.until(CONFIGMAP, "thing", lambda each: each["data"]["size"] == "1")
        await things.until_quiet()
        restored = [each for each in things.server.list(EVENT) if each["reason"] == "Restored"]
    assert len(restored) == 1
    assert restored[0]["series"]["count"] == 2


@pytest.mark.parametrize(
    ("before", "after", "fields"),
    [
        ({"spec": {"a": 1}}, {"spec": {"a": 2, "b": 1}}, ["spec.a", "spec.b"]),
        ({"data": {"x": "1"}}, {"data": {}}, ["data.x"]),
        ({"l": [{"a": 1}, {"a": 2}]}, {"l": [{"a": 1}, {"a": 3}]}, ["l[1].a"]),
        ({"l": [1]}, {"l": [1, 2]}, ["l"]),
        ({"a": 1}, {"a": 1}, []),
    ],
)
def test_the_fields_that_changed(before: JsonObject, after: JsonObject, fields: list[str]) -> None:
    """Paths as kubectl explain has them."""
    assert list(changed_fields(before, after)) == fields


def test_a_change_of_replicas_alone_is_scaling() -> None:
    """The numbers are in the event."""
    before, after = ({"metadata": {}, "spec": {"replicas": count}} for count in (1, 3))
    scaled = WrittenChild("Scaled", "Deployment shop", "from 1 to 3")
    assert describe_update("Deployment shop", before, after) == scaled
    assert events_of([scaled]) == [Event("Scaled", "Scaled Deployment shop from 1 to 3")]


def test_metadata_is_no_change() -> None:
    """Such as the annotation of what was applied."""
    after = {"metadata": {"annotations": {"a": "b"}}, "data": {}}
    assert describe_update("ConfigMap a", {"metadata": {}, "data": {}}, after) is None


def test_many_fields_and_children_are_summarized() -> None:
    """One event for the planned writes, one for the repairs; five fields of each child."""
    before = {"metadata": {}, "data": {}}
    after = {"metadata": {}, "data": {str(each): "" for each in range(7)}}
    update = describe_update("ConfigMap a", before, after)
    assert update is not None
    assert events_of(
        [
            WrittenChild("Created", "Deployment a"),
            WrittenChild("Created", "Service a"),
            update,
            WrittenChild("Restored", "Service b", "spec.ports, changed by kubectl-edit"),
        ]
    ) == [
        Event(
            "Created",
            "Created Deployment a, Service a; updated ConfigMap a: data.0, data.1, data.2, "
            "data.3, data.4 and 2 more",
        ),
        Event("Restored", "Restored Service b: spec.ports, changed by kubectl-edit"),
    ]
