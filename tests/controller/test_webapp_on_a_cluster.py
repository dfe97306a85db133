"""WebApps on a real control plane: created children, repairs, unchanged objects, and the number of writes."""

import asyncio
from collections import Counter
from typing import Any

import pytest

from controller.reconcilers.application import deployment
from controller.reconcilers.resources import DEPLOYMENT, SERVICE
from controller.reconcilers.webapp import WEBAPP, application_of
from controller.runtime.apply import FIELD_MANAGER, Applier
from controller.runtime.cache import Caches
from controller.runtime.conflict_backoff import Conflicts
from controller.runtime.events import EVENT
from controller.runtime.expectations import Expectations
from controller.runtime.observed import Owner, Snapshot
from controller.runtime.ownership import NameTakenError
from controller.runtime.plan import Apply, Step
from controller.runtime.status import ready_in
from controller.runtime.types import ReconcileRequest
from kube.client import Client
from kube.resource import Resource
from tests.controller.conftest import Start
from tests.controller.observer import COLLECTED_WITHIN, Observer
from tests.controller.webapps import is_running, webapp
from tests.controlplane.audit import WRITES
from tests.controlplane.plane import ControlPlane

pytestmark = pytest.mark.controlplane

WEBAPPS = WEBAPP.resource


def version(object: dict[str, Any]) -> int:
    """The resource version, which grows with every change."""
    return int(object["metadata"]["resourceVersion"])


def writes(plane: ControlPlane, since: int, agent: str) -> list[str]:
    """The controller's writes since a mark except events, as verb and resource."""
    return [
        f"{event['verb']} {event['objectRef']['resource']}{'/' * ('subresource' in event['objectRef'])}"
        f"{event['objectRef'].get('subresource', '')}"
        for event in plane.audit_events(since, verb=WRITES)
        if event["userAgent"] == agent and event["objectRef"]["resource"] != "events"
    ]


async def test_a_webapp_becomes_ready(
    client: Client, observer: Observer, controller: Start
) -> None:
    """A Deployment, a Service and a status are written, and nothing else."""
    async with controller():
        await client.create(WEBAPPS, webapp(observer.namespace, replicas=3))
        running = await observer.until(WEBAPPS, "shop", is_running)
    ready = ready_in(running["status"])
    assert ready is not None
    assert (ready["status"], ready["observedGeneration"]) == ("True", 1)
    assert running["status"]["readyReplicas"] == running["status"]["replicas"] == 3
    for resource in (DEPLOYMENT, SERVICE):
        child = await observer.until(resource, "shop")
        owner = child["metadata"]["ownerReferences"][0]
        assert (owner["uid"], owner["controller"], owner["blockOwnerDeletion"]) == (
            running["metadata"]["uid"],
            True,
            True,
        )


async def test_hand_edits_are_put_back(
    client: Client, observer: Observer, controller: Start
) -> None:
    """An edited field that the controller owns in a child is restored."""
    async with controller():
        await client.create(WEBAPPS, webapp(observer.namespace))
        await observer.until(WEBAPPS, "shop", is_running)
        await client.patch(DEPLOYMENT, "shop", {"spec": {"replicas": 5}}, observer.namespace)
        await observer.until(DEPLOYMENT, "shop", lambda each: bool(each["spec"]["replicas"] == 1))
        edited = await client.patch(
            SERVICE, "shop", {"spec": {"selector": {"hand": "made"}}}, observer.namespace
        )
        assert edited["spec"]["selector"] == {"app": "shop", "hand": "made"}
        edit = version(edited)
        mended = await observer.until(SERVICE, "shop", lambda each: version(each) > edit)
        assert mended["spec"]["selector"] == {"app": "shop"}


@pytest.mark.parametrize("resource", [DEPLOYMENT, SERVICE])
async def test_a_deleted_child_is_recreated(
    client: Client, observer: Observer, controller: Start, resource: Resource
) -> None:
    """The controller recreates a deleted child."""
    async with controller():
        await client.create(WEBAPPS, webapp(observer.namespace))
        await observer.until(WEBAPPS, "shop", is_running)
        uid = (await observer.until(resource, "shop"))["metadata"]["uid"]
        await client.delete(resource, "shop", observer.namespace)
        await observer.until(resource, "shop", lambda each: bool(each["metadata"]["uid"] != uid))


async def test_a_foreign_deployment_is_never_changed(
    client: Client, observer: Observer, controller: Start
) -> None:
    """NameTaken is reported by the condition and an event; when the name is free, the children are created."""
    foreign = deployment(
        application_of(WEBAPP.type.model_validate(webapp(observer.namespace, image="theirs")))
    )
    stored = await client.create(DEPLOYMENT, foreign)
    async with controller():
        await client.create(WEBAPPS, webapp(observer.namespace))
        refused = await observer.until(
            WEBAPPS, "shop", lambda each: ready_in(each.get("status", {})) is not None
        )
        event = await observer.until_any(EVENT, lambda each: bool(each["reason"] == "NameTaken"))
        now = await client.get(DEPLOYMENT, "shop", observer.namespace)
        ready = ready_in(refused["status"])
        assert ready is not None
        assert (ready["status"], ready["reason"]) == ("False", "NameTaken")
        assert ready["message"].startswith("failed to create deployment: Deployment shop exists")
        assert refused["status"]["phase"] == "Failed"
        assert (event["type"], event["regarding"]["name"]) == ("Warning", "shop")
        assert (now["spec"], now["metadata"]["generation"]) == (stored["spec"], 1)
        assert "ownerReferences" not in now["metadata"]
        await client.delete(DEPLOYMENT, "shop", observer.namespace)
        await observer.until(WEBAPPS, "shop", is_running)


async def test_webapps_cost_no_more_writes_than_promised(
    client: Client, observer: Observer, controller: Start, webapps_installed: ControlPlane
) -> None:
    """N WebApps of one replica cost 2N writes of children and 2N of statuses, then none, also after a restart.

    Conditions of other writers in the statuses make no difference.
    """
    count = 10
    said = {"type": "Approved", "status": "True", "reason": "Looked", "message": ""}
    said["lastTransitionTime"] = "2026-01-02T03:04:05Z"
    mark = await asyncio.to_thread(webapps_installed.audit_mark)
    async with controller() as process:
        for number in range(count):
            await client.create(WEBAPPS, webapp(observer.namespace, f"shop-{number}"))
        for number in range(count):
            await observer.until(WEBAPPS, f"shop-{number}", is_running)
    written = await asyncio.to_thread(writes, webapps_installed, mark, process.agent)
    assert Counter(written) == {
        "patch deployments": count,
        "patch services": count,
        "patch webapps/status": 2 * count,
    }
    for number in range(count):
        named = {"name": f"shop-{number}", "namespace": observer.namespace}
        theirs = {"metadata": named, "status": {"conditions": [said]}}
        await client.apply(WEBAPPS, theirs, field_manager="them", subresource="status")
    async with controller() as process:
        await process.until_reconciled(count)
    assert await asyncio.to_thread(writes, webapps_installed, mark, process.agent) == []


async def test_a_changed_spec_costs_one_write_of_each_kind(
    client: Client, observer: Observer, controller: Start, webapps_installed: ControlPlane
) -> None:
    """A new port: Deployment, Service and status once each, and the status has its generation."""
    async with controller() as process:
        await client.create(WEBAPPS, webapp(observer.namespace))
        await observer.until(WEBAPPS, "shop", is_running)
        mark = await asyncio.to_thread(webapps_installed.audit_mark)
        await client.patch(WEBAPPS, "shop", {"spec": {"port": 81}}, observer.namespace)
        await observer.until(
            WEBAPPS, "shop", lambda each: bool(each["status"]["observedGeneration"] == 2)
        )
    written = await asyncio.to_thread(writes, webapps_installed, mark, process.agent)
    assert sorted(written)[:2] == ["patch deployments", "patch services"]


async def test_what_was_changed_while_no_controller_ran_is_put_right(
    client: Client, observer: Observer, controller: Start
) -> None:
    """A new WebApp, a changed spec and an edited child are all reconciled."""
    async with controller():
        await client.create(WEBAPPS, webapp(observer.namespace, "edited"))
        await client.create(WEBAPPS, webapp(observer.namespace, "respecified"))
        await observer.until(WEBAPPS, "edited", is_running)
        await observer.until(WEBAPPS, "respecified", is_running)
    await client.create(WEBAPPS, webapp(observer.namespace, "new"))
    await client.patch(
        SERVICE, "edited", {"spec": {"selector": {"hand": "made"}}}, observer.namespace
    )
    await client.patch(WEBAPPS, "respecified", {"spec": {"replicas": 2}}, observer.namespace)
    async with controller():
        await observer.until(WEBAPPS, "new", is_running)
        await observer.until(
            DEPLOYMENT, "respecified", lambda each: bool(each["spec"]["replicas"] == 2)
        )
        await observer.until(
            SERVICE, "edited", lambda each: bool(each["spec"]["selector"] == {"app": "edited"})
        )


async def test_a_deleted_webapp_takes_its_children_along(
    client: Client, observer: Observer, controller: Start
) -> None:
    """The garbage collector removes the children; the controller does not make them again."""
    async with controller():
        await client.create(WEBAPPS, webapp(observer.namespace))
        await observer.until(WEBAPPS, "shop", is_running)
        await client.delete(WEBAPPS, "shop", observer.namespace, propagation="Foreground")
        await observer.until_gone(WEBAPPS, "shop")
        await observer.until_gone(DEPLOYMENT, "shop")
        await observer.until_gone(SERVICE, "shop")


async def test_a_recreated_owner_gets_new_children(
    client: Client, observer: Observer, controller: Start
) -> None:
    """After deletion and immediate recreation, the old children are deleted, not taken over."""
    async with controller():
        await client.create(WEBAPPS, webapp(observer.namespace))
        old = await observer.until(WEBAPPS, "shop", is_running)
        await client.delete(WEBAPPS, "shop", observer.namespace)
        new = await client.create(WEBAPPS, webapp(observer.namespace))
        assert new["metadata"]["uid"] != old["metadata"]["uid"]

        def is_of_the_new(child: dict[str, Any]) -> bool:
            return [each["uid"] for each in child["metadata"]["ownerReferences"]] == [
                new["metadata"]["uid"]
            ]

        for resource in (DEPLOYMENT, SERVICE):
            child = await observer.until(resource, "shop", is_of_the_new, COLLECTED_WITHIN)
            kept = [
                each.new
                for kind, each in observer.history
                if kind == resource.kind and each.new is not None
            ]
            uids = {each.uid: each.owner.uid for each in kept if each.owner}
            assert set(uids.values()) == {old["metadata"]["uid"], new["metadata"]["uid"]}
            assert uids[child["metadata"]["uid"]] == new["metadata"]["uid"]


async def test_a_refused_child_is_a_permanent_error(
    client: Client, observer: Observer, controller: Start
) -> None:
    """A rejected child causes Failed, in the condition and an event, until the spec is fixed."""
    async with controller():
        security = {"allowPrivilegeEscalation": False, "privileged": True}
        await client.create(WEBAPPS, webapp(observer.namespace, securityContext=security))
        failed = await observer.until(
            WEBAPPS, "shop", lambda each: each.get("status", {}).get("phase") == "Failed"
        )
        await observer.until_any(EVENT, lambda each: bool(each["reason"] == "ReconcileFailed"))
        ready = ready_in(failed["status"])
        assert ready is not None
        assert ready["reason"] == "Invalid"
        assert ready["message"].startswith("failed to create deployment: ")
        assert await observer.until(SERVICE, "shop")
        await client.patch(WEBAPPS, "shop", {"spec": {"securityContext": None}}, observer.namespace)
        await observer.until(WEBAPPS, "shop", is_running)


async def test_an_object_that_the_caches_do_not_know_is_never_touched(
    client: Client, namespace: str
) -> None:
    """An equal Deployment that was created after the reconcile read the cache stays unchanged."""
    stored = await client.create(WEBAPPS, webapp(namespace))
    desired = deployment(application_of(WEBAPP.type.model_validate(stored)))
    theirs = await client.create(DEPLOYMENT, desired)
    caches = {each: Caches(client).of(each) for each in (WEBAPPS, DEPLOYMENT, SERVICE)}
    request = ReconcileRequest(namespace, "shop")
    owner, observed = Owner(request, WEBAPPS, stored), Snapshot(request, WEBAPP, caches, {})
    applier = Applier(WEBAPP, client, caches, Expectations(), Conflicts(), owner, observed)
    with pytest.raises(NameTakenError):
        await applier.apply(Step("deployment", [Apply(desired)]), may_create=True)
    now = await client.get(DEPLOYMENT, "shop", namespace)
    assert now["spec"] == theirs["spec"]
    assert now["metadata"]["labels"] == theirs["metadata"]["labels"]
    assert "ownerReferences" not in now["metadata"]
    assert FIELD_MANAGER not in {each["manager"] for each in now["metadata"]["managedFields"]}
