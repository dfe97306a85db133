"""Fields that we applied and want no more are taken away, and nothing else is a reason to apply again."""

from datetime import datetime
from typing import Any

import orjson
import pytest

from controller.runtime.claims import claims_of
from controller.runtime.drift import covers
from controller.runtime.plan import Apply, Plan, Seen, Step
from tests.controller.runtime.conftest import CONFIGMAP, NAMESPACE, Object, Running, Status, Thing, configmap

PORTS: Object = {
    "f:spec": {
        "f:ports": {
            'k:{"port":80,"protocol":"TCP"}': {".": {}, "f:port": {}, "f:targetPort": {}},
            'k:{"port":53,"protocol":"UDP"}': {".": {}, "f:port": {}, "f:protocol": {}},
        },
        "f:selector": {},
    }
}
WEB = {"port": 80, "targetPort": 8080}
NAMES = {"port": 53, "protocol": "UDP"}
STORED: Object = {"ports": [{**WEB, "protocol": "TCP"}, NAMES], "selector": {"app": "a"}, "type": "ClusterIP"}


def covers_claims(applied: Object, stored: Any, desired: Any) -> bool:
    """Tell whether a stored object has what is desired, and nothing of ours beside it."""
    return covers(stored, desired, claims=claims_of(orjson.dumps(applied)))


@pytest.mark.parametrize(
    ("desired", "wanted"),
    [
        ({"ports": [WEB, NAMES], "selector": {"app": "a"}}, True),
        ({"ports": [WEB, NAMES], "selector": {"app": "a"}, "type": "ClusterIP"}, True),
        ({"ports": [WEB, NAMES]}, False),
        ({"ports": [WEB], "selector": {"app": "a"}}, False),
        ({"ports": [{"port": 80}, NAMES], "selector": {"app": "a"}}, False),
        ({"ports": [WEB, {"port": 53, "protocol": "TCP"}], "selector": {"app": "a"}}, False),
        ({"ports": None, "selector": {"app": "a"}}, False),
        ({}, False),
    ],
)
def test_fields_that_were_applied_are_found_in_what_is_desired(desired: Object, wanted: bool) -> None:
    """Items of lists by their keys, of which the server may have filled some in."""
    assert covers_claims(PORTS, {"spec": STORED, "kind": "Service"}, {"spec": desired}) is wanted


def test_what_was_never_applied_is_no_reason() -> None:
    """Without a claim on them, the fields that others added do not matter."""
    stored, desired = {"spec": STORED, "kind": "Service"}, {"spec": {"ports": [WEB, NAMES]}}
    assert covers(stored, desired, claims=claims_of(b""))


@pytest.mark.parametrize(
    ("stored", "desired", "wanted"),
    [
        (["a", "b"], ["a", "b"], True),
        (["a"], ["a"], True),
        (["a", "b"], ["b"], False),
        (["a"], [], False),
        (["a"], None, False),
    ],
)
def test_values_of_sets_are_found(stored: Any, desired: Any, wanted: bool) -> None:
    """A finalizer that we added and want no more is one field too many."""
    applied: Object = {"f:metadata": {"f:finalizers": {'v:"a"': {}}}}
    named = {"name": "x", "finalizers": stored}
    assert covers_claims(applied, {"metadata": named}, {"metadata": {"finalizers": desired}}) is wanted


async def test_a_field_that_a_new_release_does_not_set_goes(running: Running) -> None:
    """One write for each child that has it after the start; the next start costs none, and no field of others goes."""

    def release(*data: str) -> Any:
        def plan(thing: Thing, seen: Seen, now: datetime) -> Plan:
            del now
            child = configmap(thing.metadata["name"], **dict.fromkeys(data, "x"))
            return Plan((Step("config", [Apply(child)]),), Status())

        return plan

    async with running(release("kept", "dropped")) as things:
        for name in ("one", "two"):
            things.create(name)
            await things.until_ready(name=name)
        things.server.change(CONFIGMAP, "one", {"data": {"other": "somebody's"}}, NAMESPACE)
        await things.until_quiet()
    things.server.requests.clear()
    async with running(release("kept")) as things:
        await things.until_quiet()
        written = [each for each in things.writes() if "marker" not in each]
        left = {name: things.server.get(CONFIGMAP, name, NAMESPACE) for name in ("one", "two")}
    assert sorted(written) == ["PATCH configmaps/one", "PATCH configmaps/two"]
    assert {name: child and child["data"] for name, child in left.items()} == {
        "one": {"kept": "x", "other": "somebody's"},
        "two": {"kept": "x"},
    }
    before = {name: child and child["metadata"]["resourceVersion"] for name, child in left.items()}
    things.server.requests.clear()
    async with running(release("kept")) as things:
        await things.until_quiet()
        assert [each for each in things.writes() if "marker-" not in each] == []
        for name, version in before.items():
            child = things.server.get(CONFIGMAP, name, NAMESPACE)
            assert child
            assert child["metadata"]["resourceVersion"] == version
