"""The order in which the instances of a PostgreSQL restart: tables of what is observed -> the next pod."""

from typing import Any

import pytest

from controller.reconcilers.postgresql_members import keep_pod
from controller.runtime.plan import Delete, Plan
from kube.resource import JsonObject
from tests.controller.reconcilers.test_postgresql import (
    LABELS,
    child,
    endpoints,
    made,
    planned,
    stateful_set,
    writes,
)

ON_DELETE = {"type": "OnDelete"}
ROLLING = {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}
HOLD = {"type": "RollingUpdate", "rollingUpdate": {"partition": 5}}
LED = endpoints(leader="shop-1")
SYNC = endpoints("shop-sync", leader="shop-1", sync_standby="shop-2")
PATRONI = "shop-gatewright-patroni"


def pod(
    number: int,
    *,
    revision: str = "old",
    ready: bool = True,
    state: str | None = "running",
    account: str = PATRONI,
    **metadata: Any,
) -> JsonObject:
    """An instance as the cache keeps it; without a `state`, Patroni never ran in it."""
    stored = child("Pod", f"shop-{number}", spec={"serviceAccountName": account})
    stored["status"] = {"conditions": [{"type": "Ready", "status": str(ready)}]}
    stored["metadata"]["labels"] = {**LABELS, "controller-revision-hash": revision}
    if state:
        stored["metadata"]["annotations"] = {"status": f'{{"state": "{state}"}}'}
    kept = keep_pod(stored)
    return {**stored, **kept, "metadata": {**stored["metadata"], **kept["metadata"], **metadata}}


def new(number: int, **fields: Any) -> JsonObject:
    """An instance that is as the template says."""
    return pod(number, revision="new", **fields)


def instances(strategy: JsonObject = ON_DELETE, replicas: int = 3) -> JsonObject:
    """The StatefulSet, whose controller has seen its template."""
    stored = stateful_set(replicas)
    stored["spec"] |= {"updateStrategy": strategy, "replicas": replicas}
    stored["spec"]["template"] = {"spec": {"serviceAccountName": PATRONI}}
    stored["status"]["updateRevision"] = "new"
    return stored


def deleted(plan: Plan) -> list[str]:
    """The pods that a plan deletes."""
    return [each.reference.name for each in writes(plan, "database") if isinstance(each, Delete)]


@pytest.mark.parametrize(
    ("pods", "state", "restarted"),
    [
        # a standby that commits do not wait for, then the other one, then the primary
        ([pod(0), pod(1), pod(2)], [LED, SYNC], ["shop-0"]),
        ([new(0, ready=False), pod(1), pod(2)], [LED, SYNC], []),
        ([new(0), pod(1), pod(2)], [LED, SYNC], ["shop-2"]),
        ([new(0), pod(1), pod(2, deletionTimestamp="2026-01-01T00:00:00Z")], [LED, SYNC], []),
        ([new(0), pod(1)], [LED, SYNC], []),
        ([new(0), pod(1), new(2)], [LED, SYNC], ["shop-1"]),
        # nothing could take its place
        ([new(0), pod(1), new(2)], [LED], []),
        ([new(0), new(1), new(2)], [LED, SYNC], []),
        # a fail-over: what runs may become the primary, what does not run may not
        ([pod(0), pod(1), pod(2)], [], []),
        ([pod(0, ready=False), new(1), pod(2, ready=False)], [], []),
        ([pod(0, ready=False, state="crashed"), pod(1), pod(2)], [], ["shop-0"]),
        # Patroni never ran in them: their image cannot be pulled
        ([pod(0, ready=False, state=None), pod(1), pod(2)], [LED], ["shop-0"]),
        ([pod(0), pod(1, ready=False, state=None), pod(2)], [LED], ["shop-1"]),
    ],
)
def test_standbys_restart_first_and_the_primary_hands_over_last(
    pods: list[JsonObject], state: list[JsonObject], restarted: list[str]
) -> None:
    """One at a time, whichever numbers they have."""
    plan = planned(children=[instances()], found=[*pods, *state], replicas=3)
    assert deleted(plan) == restarted


def test_a_single_instance_restarts() -> None:
    """There is no instance to hand over to."""
    led = endpoints(leader="shop-0")
    plan = planned(children=[instances(replicas=1)], found=[pod(0), led])
    assert deleted(plan) == ["shop-0"]


OLD = [pod(0, state=None, account="default"), pod(1, state=None, account="default")]
FIRST_NEW = [new(0), pod(1, state=None, account="default")]


@pytest.mark.parametrize(
    ("pods", "state", "before", "after", "restarted"),
    [
        (OLD, [], ROLLING, HOLD, []),
        (OLD, [], HOLD, ON_DELETE, []),
        (OLD, [], ON_DELETE, ON_DELETE, ["shop-0"]),
        # A lock of before a return to the earlier release counts for nothing.
        (OLD, [endpoints(leader="shop-0")], ON_DELETE, ON_DELETE, ["shop-0"]),
        (FIRST_NEW, [], ON_DELETE, ON_DELETE, []),
        (FIRST_NEW, [endpoints(leader="shop-0")], ON_DELETE, ON_DELETE, ["shop-1"]),
    ],
)
def test_the_primary_of_an_earlier_release_is_taken_over_first(
    pods: list[JsonObject],
    state: list[JsonObject],
    before: JsonObject,
    after: JsonObject,
    restarted: list[str],
) -> None:
    """A standby without a leader would make itself a second primary: it waits until there is one."""
    plan = planned(children=[instances(before, 2)], found=[*pods, *state], replicas=2)
    (object,) = made(plan, "StatefulSet")
    assert object["spec"]["updateStrategy"] == after
    assert deleted(plan) == restarted


def test_pods_stay_until_the_new_template_is_seen() -> None:
    """The StatefulSet controller would create them again from the old template."""
    unseen = instances(replicas=2)
    unseen["metadata"]["generation"] = 2
    assert deleted(planned(children=[unseen], found=OLD, replicas=2)) == []


def test_a_new_database_has_its_strategy_from_the_start() -> None:
    """Only one of an earlier release has a default to remove first."""
    (object,) = made(planned(), "StatefulSet")
    assert object["spec"]["updateStrategy"] == ON_DELETE
