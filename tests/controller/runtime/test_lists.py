"""Lists of ours that somebody wrote anew: they are ours again, and of nobody who could keep us from changing them."""

from collections.abc import Callable
from datetime import datetime

import pytest

from controller.runtime import backoff
from controller.runtime.claims import FIELD_MANAGER
from controller.runtime.lists import is_rewritten
from controller.runtime.plan import Apply, Plan, Seen, Step
from kube.resource import Resource
from tests.controller.runtime.conftest import NAMESPACE, Object, Running, Status, Thing

SERVICE = Resource("", "v1", "services", "Service")
WEB: Object = {"name": "web", "ports": [{"name": "http", "containerPort": 80}], "env": [{"name": "A", "value": "1"}]}
SIDECAR: Object = {"name": "sidecar"}


@pytest.mark.parametrize(
    ("containers", "rewritten"),
    [
        ([WEB], False),
        ([WEB, SIDECAR], False),
        ([SIDECAR], True),
        ([], False),
        (None, False),
        ([{**WEB, "image": "theirs"}], False),
        ([{**WEB, "ports": [{"name": "http", "containerPort": 81}]}, SIDECAR], True),
        ([{**WEB, "ports": [{"containerPort": 80, "protocol": "UDP"}]}], True),
        ([{**WEB, "ports": [{"containerPort": 80, "protocol": "TCP"}, {"containerPort": 81}]}], False),
        ([{**WEB, "env": [{"name": "B", "value": "1"}]}], True),
        ([{**WEB, "env": []}], False),
    ],
)
def test_a_list_is_rewritten_where_an_item_gave_way_to_another(containers: list[Object], rewritten: bool) -> None:
    """What stands beside ours is no harm, and what is merely missing is applied again."""
    assert is_rewritten({"spec": {"containers": containers}}, {"spec": {"containers": [WEB]}}) is rewritten


def plan(thing: Thing, seen: Seen, now: datetime) -> Plan:
    """One Service; its port is the Thing's size."""
    del seen, now
    spec = {"selector": {"app": "thing"}, "ports": [{"name": "http", "port": thing.spec.size, "protocol": "TCP"}]}
    child = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": thing.metadata["name"]}, "spec": spec}
    return Plan((Step("service", [Apply(child)]),), Status())


def has(*ports: int) -> Callable[[Object], bool]:
    """Tell whether a Service has these ports."""
    return lambda service: [port["port"] for port in service["spec"]["ports"]] == list(ports)


def is_applied(service: Object) -> bool:
    """Tell whether we own a Service's port 80, and that by an apply alone."""
    mine = [each for each in service["metadata"]["managedFields"] if each["manager"] == FIELD_MANAGER]
    return [each["operation"] for each in mine] == ["Apply"] and '"port":80,' in str(mine[0]["fieldsV1"])


async def test_a_port_that_was_changed_by_hand_comes_back_alone(running: Running) -> None:
    """What was added beside it stays; after it was put back, another port of the plan takes its place as ever."""
    async with running(plan, owns=(SERVICE,)) as things:
        things.create(size=80)
        await things.until(SERVICE, "thing", has(80))
        await things.until_ready()
        theirs = {"metadata": {"labels": {"theirs": "yes"}}, "spec": {"ports": [{"name": "http", "port": 81}]}}
        things.server.change(SERVICE, "thing", theirs, NAMESPACE)
        service = await things.until(SERVICE, "thing", lambda each: has(80)(each) and is_applied(each))
        assert service["metadata"]["labels"] == {"theirs": "yes"}
        assert things.writes().count("PATCH services/thing") == 4, "one made it, three put it back"
        things.server.change(things.resource, "thing", {"spec": {"size": 8080}}, NAMESPACE)
        await things.until(SERVICE, "thing", has(8080))
        await things.until_quiet()
        beside = {"spec": {"ports": [{"name": "http", "port": 8080}, {"name": "theirs", "port": 9090}]}}
        things.server.change(SERVICE, "thing", beside, NAMESPACE)
        await things.until_quiet()
        assert await things.until(SERVICE, "thing", has(8080, 9090))


async def test_what_others_added_outlasts_a_failure(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """An apply of another port that failed is tried again as it was: nobody changed what is ours."""
    monkeypatch.setattr(backoff, "FIRST", 0.05)
    async with running(plan, owns=(SERVICE,)) as things:
        things.create(size=80)
        await things.until_ready()
        beside = {"spec": {"ports": [{"name": "http", "port": 80}, {"name": "theirs", "port": 9090}]}}
        things.server.change(SERVICE, "thing", beside, NAMESPACE)
        await things.until_quiet()
        things.server.fail(1, 500, method="PATCH", path="services")
        things.server.change(things.resource, "thing", {"spec": {"size": 8080}}, NAMESPACE)
        await things.until_ready("False")
        await things.until_ready("True")
        service = await things.until(SERVICE, "thing")
    assert sorted(port["port"] for port in service["spec"]["ports"]) == [8080, 9090]
