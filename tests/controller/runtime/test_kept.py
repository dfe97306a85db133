"""What outlives its parent: made without an owner, used again by the next, and never taken from anybody else."""

from datetime import datetime

import pytest

from controller.runtime.conditions import ready_in
from controller.runtime.fake_client import FakeClient
from controller.runtime.plan import Once, Plan, Random, Seen, Step
from controller.runtime.planned_kind import PlannedKind, Reads
from controller.runtime.result import TerminalError
from controller.runtime.testing import reconcile
from tests.controller.runtime.conftest import CONFIGMAP, NAMESPACE, Object, Status, Thing

LABELS = {"for": "thing", "by": "us"}
KEPT = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kept", "namespace": NAMESPACE, "labels": LABELS}}


def plan(thing: Thing, seen: Seen, now: datetime) -> Plan:
    """One ConfigMap that is kept, and how many there are."""
    del thing, now
    once = Once(KEPT, {"data.made": Random(8)}, known_by=LABELS)
    return Plan((Step("kept", [once]),), Status({"found": len(seen.find(CONFIGMAP, "for", "thing"))}))


def by_label(object: Object) -> list[str]:
    """Whose it is."""
    return [object["metadata"]["labels"]["for"]]


KIND = PlannedKind(Thing, plan=plan, owns=(CONFIGMAP,), reads=(Reads(CONFIGMAP, {"for": by_label}, "by=us"),))


async def born() -> FakeClient:
    """A Thing, and nothing else."""
    client = FakeClient()
    await client.create(KIND.resource, {"metadata": {"name": "thing", "namespace": NAMESPACE}, "spec": {}})
    return client


async def test_it_has_no_owner_and_the_next_parent_takes_it_as_it_is() -> None:
    """It is created once; another parent of another uid finds it right."""
    client = await born()
    await reconcile(KIND, client, "thing")
    made = await client.get(CONFIGMAP, "kept", NAMESPACE)
    assert "ownerReferences" not in made["metadata"]
    await client.delete(KIND.resource, "thing", NAMESPACE)
    await client.create(KIND.resource, {"metadata": {"name": "thing", "namespace": NAMESPACE}, "spec": {}})
    await reconcile(KIND, client, "thing")
    assert await client.get(CONFIGMAP, "kept", NAMESPACE) == made
    stored = await client.get(KIND.resource, "thing", NAMESPACE)
    assert stored["status"]["found"] == 1


async def test_one_without_our_labels_is_somebody_elses() -> None:
    """It is not even in the cache, and it is not touched: NameTaken."""
    client = await born()
    labels = {"for": "thing", "by": "them"}
    theirs = await client.create(CONFIGMAP, {**KEPT, "metadata": {**KEPT["metadata"], "labels": labels}})
    with pytest.raises(TerminalError, match="ConfigMap kept exists and was not made by this Thing"):
        await reconcile(KIND, client, "thing")
    assert await client.get(CONFIGMAP, "kept", NAMESPACE) == theirs
    stored = await client.get(KIND.resource, "thing", NAMESPACE)
    ready = ready_in(stored["status"])
    assert ready is not None
    assert (ready["reason"], stored["status"]["found"]) == ("NameTaken", 0)
