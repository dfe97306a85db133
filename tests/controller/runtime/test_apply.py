"""The writes of a plan: for children that are as desired, were changed, or lose a field with a new release."""

from datetime import datetime
from typing import Any

import pytest

import controller.runtime.workqueue
from controller.runtime.applied import APPLIED, REPLACED, applied_to
from controller.runtime.plan import Apply, Observed, Plan, Step
from kube.resource import JsonObject, Resource
from tests.controller.runtime.conftest import (
    CONFIGMAP,
    NAMESPACE,
    Planner,
    Running,
    Status,
    Thing,
    Things,
    configmap,
)
from tests.controller.runtime.test_reconciler import single

DEPLOYMENT = Resource("apps", "v1", "deployments", "Deployment")
UNMARKED: JsonObject = {"metadata": {"annotations": {APPLIED: None}}}


def release(*data: str) -> Planner:
    """A release whose ConfigMaps have these keys."""

    def plan(thing: Thing, observed: Observed, now: datetime) -> Plan:
        del observed, now
        child = configmap(thing.metadata["name"], **dict.fromkeys(data, "x"))
        return Plan((Step("config", [Apply(child)]),), Status())

    return plan


def pods(thing: Thing, observed: Observed, now: datetime) -> Plan:
    """A Deployment with a container for each unit of size, each with a port; with a scale, it is paused."""
    del observed, now
    containers = [
        {
            "name": f"c-{number}",
            "image": "nginx",
            "ports": [{"containerPort": 80 + number, "protocol": "TCP"}],
        }
        for number in range(thing.spec.size)
    ]
    spec: JsonObject = {"template": {"spec": {"containers": containers}}}
    if thing.spec.scale:
        spec["paused"] = True
    child = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": thing.metadata["name"]},
        "spec": spec,
    }
    return Plan((Step("pods", [Apply(child)]),), Status())


def containers(deployment: JsonObject) -> list[str]:
    """The names of a Deployment's containers."""
    return [each["name"] for each in deployment["spec"]["template"]["spec"]["containers"]]


def written(things: Things) -> list[str]:
    """The writes about other Things than markers."""
    return [each for each in things.writes() if "marker" not in each]


async def test_a_field_that_a_new_release_does_not_set_is_removed(running: Running) -> None:
    """After the start, each child with the field gets one write; the next start sends none, and other fields stay."""
    async with running(release("kept", "dropped")) as things:
        for name in ("one", "two"):
            things.create(name)
            await things.until_ready(name=name)
        things.server.change(CONFIGMAP, "one", {"data": {"other": "somebody's"}}, NAMESPACE)
        await things.until_quiet()
    for expected in (["PATCH configmaps/one", "PATCH configmaps/two"], []):
        things.server.requests.clear()
        async with running(release("kept")) as things:
            await things.until_quiet()
            left = {name: things.server.get(CONFIGMAP, name, NAMESPACE) for name in ("one", "two")}
            assert sorted(written(things)) == expected
        assert {name: child and child["data"] for name, child in left.items()} == {
            "one": {"kept": "x", "other": "somebody's"},
            "two": {"kept": "x"},
        }


async def test_a_container_that_leaves_the_plan_is_removed_despite_other_writes(
    running: Running,
) -> None:
    """The container is removed, although one was replaced by hand, and the status changes after each write."""
    async with running(pods, owns=(DEPLOYMENT,)) as things:
        things.create(size=2)
        await things.until_ready()
        by_hand = [{"name": "c-0", "image": "nginx"}, {"name": "by-hand", "image": "nginx"}]
        template = {"spec": {"template": {"spec": {"containers": by_hand}}}}
        statuses = iter(range(1000))

        def report(event: Any) -> None:
            if (
                event.new
                and event.new["kind"] == "Deployment"
                and event.new.get("status") == event.old.get("status")
            ):
                status = {"status": {"readyReplicas": next(statuses)}}
                things.server.change(DEPLOYMENT, "thing", status, NAMESPACE, "status")

        things.server.storage.listeners.append(report)
        things.server.change(DEPLOYMENT, "thing", template, NAMESPACE)
        await things.until(DEPLOYMENT, "thing", lambda each: containers(each) == ["c-0", "c-1"])
        await things.until_quiet()
        things.server.change(things.resource, "thing", {"spec": {"size": 1}}, NAMESPACE)
        deployment = await things.until(
            DEPLOYMENT, "thing", lambda each: "c-1" not in containers(each)
        )
        await things.until_quiet()
    assert containers(deployment) == ["c-0"]


async def test_a_repair_during_which_its_mark_is_removed_is_completed(running: Running) -> None:
    """A container replaced by hand is restored, and removed when it leaves the plan later."""
    async with running(pods, owns=(DEPLOYMENT,)) as things:
        things.create(size=2)
        await things.until_ready()
        server = things.server

        def unmark(event: Any) -> None:
            if event.new and applied_to(event.new) == REPLACED:
                server.storage.listeners.remove(unmark)
                server.change(DEPLOYMENT, "thing", UNMARKED, NAMESPACE)

        server.storage.listeners.append(unmark)
        by_hand = [{"name": "c-0", "image": "nginx"}, {"name": "by-hand", "image": "nginx"}]
        template = {"spec": {"template": {"spec": {"containers": by_hand}}}}
        server.change(DEPLOYMENT, "thing", template, NAMESPACE)
        await things.until(DEPLOYMENT, "thing", lambda each: containers(each) == ["c-0", "c-1"])
        await things.until_quiet()
        assert unmark not in server.storage.listeners
        server.change(things.resource, "thing", {"spec": {"size": 1}}, NAMESPACE)
        await things.until_quiet()
        deployment = await things.until(DEPLOYMENT, "thing")
    assert containers(deployment) == ["c-0"]


@pytest.mark.usefixtures("hasty")
async def test_a_field_that_leaves_the_plan_during_a_repair_is_removed(running: Running) -> None:
    """The apply that ends the repair of a list fails, and the next plan does not have the field."""
    async with running(pods, owns=(DEPLOYMENT,)) as things:
        things.create()
        await things.until_ready()
    server = things.server
    by_hand = {"spec": {"template": {"spec": {"containers": [{"name": "by-hand"}]}}}}
    server.change(DEPLOYMENT, "thing", by_hand, NAMESPACE)
    server.change(things.resource, "thing", {"spec": {"scale": 1}}, NAMESPACE)
    repairs = iter(range(2))

    def fail(event: Any) -> None:
        if event.new and applied_to(event.new) == REPLACED and next(repairs, None) == 1:
            server.fail(1, 500, method="PATCH", path="/deployments/thing")
            server.change(things.resource, "thing", {"spec": {"scale": 0}}, NAMESPACE)

    server.storage.listeners.append(fail)
    async with running(pods, owns=(DEPLOYMENT,)) as things:
        deployment = await things.until(
            DEPLOYMENT,
            "thing",
            lambda each: containers(each) == ["c-0"] and applied_to(each) != REPLACED,
        )
    assert next(repairs, None) is None
    assert "paused" not in deployment["spec"]


async def test_a_container_that_was_renamed_and_renamed_back_leaves_with_the_plan(
    running: Running,
) -> None:
    """Since the edits another writer owns it, so the apply keeps it; a repair and an apply remove it.

    Another write of the child delays the repair, as a status does.
    """
    async with running(pods, owns=(DEPLOYMENT,)) as things:
        things.create(size=2)
        planned = await things.until(DEPLOYMENT, "thing")
        await things.until_ready()
    server, found = things.server, planned["spec"]["template"]["spec"]["containers"]
    for by_hand in ([found[0], {**found[1], "name": "by-hand"}], found):
        template = {"spec": {"template": {"spec": {"containers": by_hand}}}}
        server.change(DEPLOYMENT, "thing", template, NAMESPACE)
    server.change(things.resource, "thing", {"spec": {"size": 1}}, NAMESPACE)
    server.requests.clear()

    def report(event: Any) -> None:
        if event.new and event.new["kind"] == "Deployment":
            server.storage.listeners.remove(report)
            server.change(DEPLOYMENT, "thing", {"status": {"replicas": 1}}, NAMESPACE, "status")

    server.storage.listeners.append(report)
    async with running(pods, owns=(DEPLOYMENT,)) as things:
        deployment = await things.until(
            DEPLOYMENT, "thing", lambda each: containers(each) == ["c-0"]
        )
        await things.until_quiet()
        assert written(things) == ["PATCH deployments/thing"] * 5 + ["PATCH things/thing/status"]
    assert containers(deployment) == ["c-0"]


async def test_list_items_of_other_writers_are_kept(running: Running) -> None:
    """Added containers stay, whatever happens to the plan's; a container that replaced a planned one is removed."""
    async with running(pods, owns=(DEPLOYMENT,)) as things:
        things.create(size=1)
        deployment = await things.until(DEPLOYMENT, "thing")
        sidecar = {"name": "sidecar", "image": "envoy"}
        found = deployment["spec"]["template"]["spec"]["containers"]
        added = {"spec": {"template": {"spec": {"containers": [*found, sidecar]}}}}
        things.server.change(DEPLOYMENT, "thing", added, NAMESPACE)
        things.server.change(things.resource, "thing", {"spec": {"size": 2}}, NAMESPACE)
        await things.until(
            DEPLOYMENT, "thing", lambda each: set(containers(each)) == {"c-0", "sidecar", "c-1"}
        )


async def test_a_child_of_an_older_version_costs_one_apply(running: Running) -> None:
    """It has no digest of the applied fields; after one apply it has, and neither a pass nor a restart writes."""
    async with running(single) as things:
        things.create()
        await things.until_ready()
    things.server.change(CONFIGMAP, "thing", UNMARKED, NAMESPACE)
    for expected in (["PATCH configmaps/thing"], []):
        things.server.requests.clear()
        async with running(single) as things:
            await things.until_quiet()
            assert written(things) == expected


async def test_fields_that_another_writer_changed_are_restored(running: Running) -> None:
    """Fields that were changed while no controller ran are restored too; unplanned fields stay."""
    async with running(single) as things:
        things.create()
        await things.until_ready()
        things.server.change(
            CONFIGMAP, "thing", {"data": {"size": "2", "other": "theirs"}}, NAMESPACE
        )
        await things.until(
            CONFIGMAP, "thing", lambda each: bool(each["data"] == {"size": "1", "other": "theirs"})
        )
    things.server.change(CONFIGMAP, "thing", {"data": {"size": None}}, NAMESPACE)
    async with running(single) as things:
        await things.until(
            CONFIGMAP, "thing", lambda each: bool(each["data"] == {"size": "1", "other": "theirs"})
        )


@pytest.mark.parametrize("code", [429, 500, 503, 409])
async def test_an_overloaded_api_server_does_not_change_a_ready_object(
    running: Running, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    """A repair is refused for a while: Ready stays True, no status is written, and the repair is retried."""
    monkeypatch.setattr(controller.runtime.workqueue, "FIRST_DELAY", 0.01)
    monkeypatch.setattr(controller.runtime.workqueue, "MAX_JITTER", 0.0)
    monkeypatch.setattr(controller.runtime.workqueue, "MAX_DELAY", 0.05)
    async with running(single) as things:
        things.create()
        ready = await things.until_ready()
        await things.until_quiet()
        things.server.requests.clear()
        things.server.fail(7, code, method="PATCH", path="/configmaps/thing")
        things.server.change(CONFIGMAP, "thing", {"data": {"size": "2"}}, NAMESPACE)
        await things.until(CONFIGMAP, "thing", lambda each: bool(each["data"] == {"size": "1"}))
        await things.until_quiet()
        assert await things.until_ready() == ready
    assert written(things) == ["PATCH configmaps/thing"] * 8


async def test_a_name_that_becomes_free_during_the_same_reconcile_is_used_at_once(
    running: Running,
) -> None:
    """The other object is deleted between the plan and the write, before the status reports NameTaken."""
    both = ("first", "thing")

    def plan(thing: Thing, observed: Observed, now: datetime) -> Plan:
        del thing, observed, now
        return Plan([Step(name, [Apply(configmap(name))]) for name in both], Status())

    async with running(plan) as things:
        theirs = {"metadata": {"name": "thing", "namespace": NAMESPACE}}
        things.server.create(CONFIGMAP, theirs)

        def remove(event: Any) -> None:
            if (
                event.new
                and event.new["kind"] == "ConfigMap"
                and event.new["metadata"]["name"] == "first"
            ):
                things.server.delete(CONFIGMAP, "thing", NAMESPACE)

        things.server.storage.listeners.append(remove)
        things.create()
        await things.until_ready()
        child = await things.until(CONFIGMAP, "thing")
    assert "ownerReferences" in child["metadata"]


async def test_a_name_that_stays_taken_is_tried_every_minute(running: Running) -> None:
    """The retry does not depend on an event, which could be lost."""
    async with running(single) as things:
        things.server.create(CONFIGMAP, {"metadata": {"name": "thing", "namespace": NAMESPACE}})
        things.create()
        await things.until_ready("False", "NameTaken")
        await things.until_told("NameTaken")
        entries = things.manager.controllers[0].queue._entries
        assert [key.name for key in entries] == ["thing"]


async def test_an_object_of_any_shape_is_its_own_failure(running: Running) -> None:
    """An object with an invalid spec fails alone; other objects are reconciled."""
    async with running(single) as things:
        for name, spec in (("text", "oops"), ("list", []), ("null", None)):
            metadata = {"name": name, "namespace": NAMESPACE}
            things.server.create(things.resource, {"metadata": metadata, "spec": spec})
            assert (await things.until_ready("False", name=name))["reason"] in (
                "Invalid",
                "Incomplete",
            )
        things.create()
        await things.until_ready()
