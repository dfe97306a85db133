"""A WebApp on a real control plane: writes of a changed spec, and children of others.

What users see of a WebApp is in tests/e2e.
"""

import asyncio
from typing import Any

import pytest

from controller.reconcilers.application import deployment
from controller.reconcilers.resources import DEPLOYMENT, SERVICE
from controller.reconcilers.webapp import WEBAPP, application_of
from controller.runtime.apply import FIELD_MANAGER, Applier
from controller.runtime.cache import Caches
from controller.runtime.conflict_backoff import Conflicts
from controller.runtime.expectations import Expectations
from controller.runtime.observed import Owner, Snapshot
from controller.runtime.ownership import NameTakenError
from controller.runtime.plan import Apply, Step
from controller.runtime.types import ReconcileRequest
from kube.client import Client
from tests.controller.conftest import Start
from tests.controller.observer import COLLECTED_WITHIN, Observer
from tests.controller.webapps import is_running, webapp
from tests.controlplane.audit import WRITES
from tests.controlplane.plane import ControlPlane

pytestmark = pytest.mark.controlplane

WEBAPPS = WEBAPP.resource


def writes(plane: ControlPlane, since: int, agent: str) -> list[str]:
    """The controller's writes since a mark except events, as verb and resource."""
    return [
        f"{event['verb']} {event['objectRef']['resource']}{'/' * ('subresource' in event['objectRef'])}"
        f"{event['objectRef'].get('subresource', '')}"
        for event in plane.audit_events(since, verb=WRITES)
        if event["userAgent"] == agent and event["objectRef"]["resource"] != "events"
    ]


async def test_a_changed_spec_costs_one_write_of_each_kind(
    client: Client, observer: Observer, controller: Start, webapps_installed: ControlPlane
) -> None:
    """A new port: Deployment, Service and status once each, and the status has its generation."""
    async with controller() as agent:
        await client.create(WEBAPPS, webapp(observer.namespace))
        await observer.until(WEBAPPS, "shop", is_running)
        mark = await asyncio.to_thread(webapps_installed.audit_mark)
        await client.patch(WEBAPPS, "shop", {"spec": {"port": 81}}, observer.namespace)
        await observer.until(
            WEBAPPS, "shop", lambda each: bool(each["status"]["observedGeneration"] == 2)
        )
    written = await asyncio.to_thread(writes, webapps_installed, mark, agent)
    assert sorted(written)[:2] == ["patch deployments", "patch services"]


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
