"""CreateOnly with labels to adopt: no owner, used again by the next parent, never taken from another owner."""

from datetime import datetime

import pytest

from controller.runtime.kind import PlannedKind, Reads
from controller.runtime.plan import CreateOnly, Observed, Plan, Random, Step
from controller.runtime.status import ready_in
from controller.runtime.types import RetryableError
from gatewright.testing import reconcile
from gatewright.testing.fake_apiserver import FakeApiServer
from kube.resource import JsonObject
from tests.controller.runtime.conftest import CONFIGMAP, NAMESPACE, Status, Thing

LABELS = {"for": "thing", "by": "us"}
KEPT = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "kept", "namespace": NAMESPACE, "labels": LABELS},
}


def plan(thing: Thing, observed: Observed, now: datetime) -> Plan:
    """One ConfigMap that is kept, and how many there are."""
    del thing, now
    once = CreateOnly(KEPT, {"data.made": Random(8)}, adopt_labels=LABELS)
    return Plan(
        (Step("kept", [once]),), Status({"found": len(observed.find(CONFIGMAP, "for", "thing"))})
    )


def by_label(object: JsonObject) -> list[str]:
    """Whose it is."""
    return [object["metadata"]["labels"]["for"]]


KIND = PlannedKind(
    Thing, plan=plan, owns=(CONFIGMAP,), reads=(Reads(CONFIGMAP, {"for": by_label}, "by=us"),)
)


THING: JsonObject = {"metadata": {"name": "thing", "namespace": NAMESPACE}, "spec": {}}


async def test_it_has_no_owner_and_the_next_parent_uses_it(server: FakeApiServer) -> None:
    """It is created once; a parent with another uid uses it unchanged."""
    server.create(KIND.resource, THING)
    await reconcile(KIND, server, "thing")
    made = server.get(CONFIGMAP, "kept", NAMESPACE)
    assert made
    assert "ownerReferences" not in made["metadata"]
    server.delete(KIND.resource, "thing", NAMESPACE)
    server.create(KIND.resource, THING)
    await reconcile(KIND, server, "thing")
    assert server.get(CONFIGMAP, "kept", NAMESPACE) == made
    assert status(server)["found"] == 1


async def test_an_object_without_the_labels_has_another_owner(server: FakeApiServer) -> None:
    """It is not even in the cache, and it is not touched: NameTaken."""
    server.create(KIND.resource, THING)
    labels = {"for": "thing", "by": "them"}
    theirs = server.create(CONFIGMAP, {**KEPT, "metadata": {**KEPT["metadata"], "labels": labels}})
    with pytest.raises(
        RetryableError, match="ConfigMap kept exists and was not created by this Thing"
    ):
        await reconcile(KIND, server, "thing")
    assert server.get(CONFIGMAP, "kept", NAMESPACE) == theirs
    ready = ready_in(status(server))
    assert ready is not None
    assert (ready["reason"], status(server)["found"]) == ("NameTaken", 0)


def status(server: FakeApiServer) -> JsonObject:
    """The Thing's status."""
    thing = server.get(KIND.resource, "thing", NAMESPACE)
    assert thing
    found: JsonObject = thing["status"]
    return found
