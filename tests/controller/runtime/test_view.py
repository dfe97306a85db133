"""What one reconcile sees: what it wrote itself included."""

from datetime import datetime
from typing import Any

import pytest

from controller.runtime.fake_client import FakeClient
from controller.runtime.plan import Apply, Delete, Plan, Reference, Seen, Step
from controller.runtime.planned_kind import PlannedKind, Reads
from controller.runtime.result import TerminalError
from controller.runtime.testing import reconcile
from tests.controller.runtime.conftest import CONFIGMAP, NAMESPACE, Object, Status, Thing


def by_label(object: Object) -> list[str]:
    """Whose it is."""
    return [object["metadata"]["labels"]["for"]]


def config_map(name: str, **labels: str) -> Object:
    """Return a ConfigMap of ours, or of somebody who labels theirs otherwise."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": labels}}


def kind(**config_maps: dict[str, str]) -> PlannedKind[Any]:
    """Return a kind that makes these, removes what there is of its own beside them, and says what it finds."""

    def plan(thing: Thing, seen: Seen, now: datetime) -> Plan:
        del thing, now
        found = seen.find(CONFIGMAP, "for", "thing")
        writes = [Apply(config_map(name, **labels)) for name, labels in config_maps.items()]
        old = [each["metadata"] for each in found if each["metadata"]["name"] not in config_maps]
        deletes = [Delete(Reference(CONFIGMAP, each["name"], each["uid"], NAMESPACE)) for each in old]
        return Plan(
            (Step("all", [*writes, *deletes]),), Status({"found": [each["metadata"]["name"] for each in found]})
        )

    reads = Reads(CONFIGMAP, {"for": by_label}, "by=us")
    return PlannedKind(Thing, plan=plan, owns=(CONFIGMAP,), reads=(reads,), deletes=(CONFIGMAP,))


async def found(client: FakeClient, kind: PlannedKind[Any]) -> Any:
    """Look once, and return what was found in the end."""
    await reconcile(kind, client, "thing")
    return (await client.get(kind.resource, "thing", NAMESPACE))["status"]["found"]


async def test_what_was_just_written_is_found() -> None:
    """By its index: made, changed so that it is found no more, and deleted, each within one reconcile."""
    client, ours, other = FakeClient(), {"for": "thing", "by": "us"}, {"for": "nobody", "by": "us"}
    await client.create(kind().resource, {"metadata": {"name": "thing", "namespace": NAMESPACE}, "spec": {}})
    assert await found(client, kind(a=ours, b=ours)) == ["a", "b"]
    assert await found(client, kind(a=ours, b=other)) == ["a"]
    assert await found(client, kind(b=ours)) == ["b"]


async def test_what_is_not_selected_is_not_found() -> None:
    """An object of somebody else, which stands in our way and was read live."""
    client = FakeClient()
    await client.create(kind().resource, {"metadata": {"name": "thing", "namespace": NAMESPACE}, "spec": {}})
    theirs = config_map("a")
    await client.create(CONFIGMAP, {**theirs, "metadata": {**theirs["metadata"], "namespace": NAMESPACE}})
    with pytest.raises(TerminalError, match="ConfigMap a exists and was not made by this Thing"):
        await reconcile(kind(a={"for": "thing", "by": "us"}), client, "thing")
    assert client.events == [
        "Warning NameTaken Thing default/thing: failed to create all: ConfigMap a exists and was not made by this "
        "Thing; rename one of them"
    ]
