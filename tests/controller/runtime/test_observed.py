"""A reconcile observes its own writes."""

from datetime import datetime
from typing import Any

import pytest

from controller.runtime.events import EVENT
from controller.runtime.kind import PlannedKind, Reads
from controller.runtime.plan import Apply, Delete, Observed, Plan, Reference, Step
from controller.runtime.types import RetryableError
from gatewright.testing import reconcile
from gatewright.testing.fake_apiserver import FakeApiServer
from kube.resource import JsonObject
from tests.controller.runtime.conftest import CONFIGMAP, NAMESPACE, Status, Thing


def by_label(object: JsonObject) -> list[str]:
    """Whose it is."""
    return [object["metadata"]["labels"]["for"]]


def config_map(name: str, **labels: str) -> JsonObject:
    """Return a ConfigMap with or without the controller's labels."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": labels}}


def kind(**config_maps: dict[str, str]) -> PlannedKind[Any]:
    """Return a kind that creates these children, deletes its other ones, and records the found ones."""

    def plan(thing: Thing, observed: Observed, now: datetime) -> Plan:
        del thing, now
        found = observed.find(CONFIGMAP, "for", "thing")
        writes = [Apply(config_map(name, **labels)) for name, labels in config_maps.items()]
        old = [each["metadata"] for each in found if each["metadata"]["name"] not in config_maps]
        deletes = [
            Delete(Reference(CONFIGMAP, object["name"], object["uid"], NAMESPACE)) for object in old
        ]
        return Plan(
            (Step("all", [*writes, *deletes]),),
            Status({"found": [each["metadata"]["name"] for each in found]}),
        )

    reads = Reads(CONFIGMAP, {"for": by_label}, "by=us")
    return PlannedKind(Thing, plan=plan, owns=(CONFIGMAP,), reads=(reads,), deletes=(CONFIGMAP,))


THING: JsonObject = {"metadata": {"name": "thing", "namespace": NAMESPACE}, "spec": {}}


async def found(server: FakeApiServer, kind: PlannedKind[Any]) -> Any:
    """Reconcile once, and return the children found at the end."""
    await reconcile(kind, server, "thing")
    return (server.get(kind.resource, "thing", NAMESPACE) or {})["status"]["found"]


async def test_what_was_just_written_is_found(server: FakeApiServer) -> None:
    """An object is found by its index after it is created, changed and deleted, each within one reconcile."""
    ours, other = {"for": "thing", "by": "us"}, {"for": "nobody", "by": "us"}
    server.create(kind().resource, THING)
    assert await found(server, kind(a=ours, b=ours)) == ["a", "b"]
    assert await found(server, kind(a=ours, b=other)) == ["a"]
    assert await found(server, kind(b=ours)) == ["b"]


async def test_what_is_not_selected_is_not_found(server: FakeApiServer) -> None:
    """An object with the name and another owner, which was read live, is not found."""
    server.create(kind().resource, THING)
    theirs = config_map("a")
    server.create(CONFIGMAP, {**theirs, "metadata": {**theirs["metadata"], "namespace": NAMESPACE}})
    with pytest.raises(
        RetryableError, match="ConfigMap a exists and was not created by this Thing"
    ):
        await reconcile(kind(a={"for": "thing", "by": "us"}), server, "thing")
    (event,) = server.list(EVENT)
    assert (event["type"], event["reason"], event["note"]) == (
        "Warning",
        "NameTaken",
        "failed to create all: ConfigMap a exists and was not created by this Thing; rename one of them, or hand it "
        "over: kubectl annotate -n default configmaps a gatewright.io/parent=Thing.test.example/thing",
    )
