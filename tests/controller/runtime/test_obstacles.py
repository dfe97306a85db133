"""Why children are not ready: from their conditions, their pods and the events about them."""

from typing import Any

import pytest

from controller.runtime.explanations import FIRST_LOOK, MAX_INTERVAL, RATE, Explanations
from controller.runtime.obstacles import (
    belongs_to,
    obstacle_of_events,
    obstacle_of_pods,
    waited_for,
)
from controller.runtime.plan import Apply, CreateOnly, Plan, Problem, Step
from controller.runtime.types import ReconcileRequest
from gatewright.testing import ApiServer
from kube.client import Client
from kube.resource import JsonObject, Resource
from tests.controller.runtime.conftest import Status

POD = Resource("", "v1", "pods", "Pod")
STATEFUL_SET = Resource("apps", "v1", "statefulsets", "StatefulSet")
EVENT = Resource("events.k8s.io", "v1", "events", "Event")
SHOP = ReconcileRequest("default", "shop")


def pod(name: str = "shop-0", owner: str = "set", **status: Any) -> JsonObject:
    """A pod of the StatefulSet."""
    reference = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "shop", "uid": owner}
    metadata = {
        "name": name,
        "namespace": "default",
        "labels": {"app": "shop"},
        "ownerReferences": [{**reference, "controller": True}],
    }
    spec = {"containers": [{"name": "app", "image": "a/b:1"}]}
    return {"metadata": metadata, "spec": spec, "status": status}


def waits(reason: str, message: str = "", **more: Any) -> JsonObject:
    """The status of a pod whose container waits."""
    container = {"name": "app", "image": "a/b:1", "ready": False, **more}
    waiting = {"reason": reason, "message": message}
    return {
        "phase": "Pending",
        "containerStatuses": [{**container, "state": {"waiting": waiting}}],
    }


UNSCHEDULED = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "Unschedulable",
    "message": "0/1 nodes are available: 1 Insufficient cpu.",
}
PULL = 'Back-off pulling image "a/b:1": ErrImagePull: not found'
EXITED = {"lastState": {"terminated": {"exitCode": 3}}}


@pytest.mark.parametrize(
    ("status", "reason", "message"),
    [
        (
            {"phase": "Pending", "conditions": [UNSCHEDULED]},
            "Unschedulable",
            "pod shop-0 is not scheduled: 0/1 nodes are available: 1 Insufficient cpu.",
        ),
        (
            waits("ImagePullBackOff", PULL),
            "ImagePullBackOff",
            "pod shop-0 cannot pull a/b:1: not found",
        ),
        (
            waits("ErrImagePull", "not found"),
            "ImagePullBackOff",
            "pod shop-0 cannot pull a/b:1: not found",
        ),
        (
            waits("CreateContainerConfigError", 'secret "x" not found'),
            "CreateContainerConfigError",
            'pod shop-0: container app cannot start: secret "x" not found',
        ),
        (
            waits("CrashLoopBackOff", "back-off 5m0s", **EXITED),
            "CrashLoopBackOff",
            "pod shop-0: container app ends with exit code 3 each time it starts; "
            "kubectl logs shop-0 -c app --previous",
        ),
        (
            {"phase": "Failed", "reason": "Evicted", "message": "the node was low on memory"},
            "Evicted",
            "pod shop-0 failed: the node was low on memory",
        ),
    ],
)
def test_a_stuck_pod_has_a_reason(status: JsonObject, reason: str, message: str) -> None:
    """An image that cannot be pulled has one text, whichever of its two states the kubelet shows."""
    assert obstacle_of_pods([pod(**status)]) == Problem(message, reason)


@pytest.mark.parametrize(
    "status",
    [
        {},
        {"phase": "Running"},
        waits("ContainerCreating"),
        waits("PodInitializing"),
        {"phase": "Pending", "conditions": [{**UNSCHEDULED, "status": "True"}]},
    ],
)
def test_a_pod_that_starts_has_none(status: JsonObject) -> None:
    """Neither has one that is being deleted."""
    assert obstacle_of_pods([pod(**status)]) is None
    gone = pod(**waits("ImagePullBackOff"))
    gone["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert obstacle_of_pods([gone]) is None


def event(second: int, type: str, reason: str, note: str = "", about: str = "set") -> JsonObject:
    """An event about the StatefulSet, or about another object."""
    return {
        "metadata": {"name": f"e{second}", "namespace": "default"},
        "type": type,
        "reason": reason,
        "note": note,
        "regarding": {"uid": about},
        "deprecatedLastTimestamp": f"2026-01-01T00:00:{second:02}Z",
    }


def test_the_latest_event_counts() -> None:
    """A warning before a normal event is past."""
    failed = event(1, "Warning", "FailedCreate", "exceeded quota")
    made = event(2, "Normal", "SuccessfulCreate")
    again = event(3, "Warning", "FailedCreate", "exceeded\nquota")
    problem = Problem("StatefulSet shop: exceeded quota", "FailedCreate")
    assert obstacle_of_events([failed], "StatefulSet shop") == problem
    assert obstacle_of_events([made, failed], "StatefulSet shop") is None
    assert obstacle_of_events([again, made, failed], "StatefulSet shop") == problem
    assert obstacle_of_events([], "StatefulSet shop") is None


def test_pods_of_others_do_not_count() -> None:
    """A pod with the labels of a workload and another controller, or none, is not its pod."""
    stateful_set = {"kind": "StatefulSet", "metadata": {"name": "shop", "uid": "set"}}
    deployment = {"kind": "Deployment", "metadata": {"name": "shop", "uid": "deployment"}}
    theirs, replicas = pod(), pod()
    theirs["metadata"]["ownerReferences"] = []
    of_shop = {"kind": "ReplicaSet", "name": "shop-7d4b", "uid": "1", "controller": True}
    replicas["metadata"]["ownerReferences"] = [of_shop]
    assert [belongs_to(each, stateful_set) for each in (pod(), theirs, replicas)] == [
        True,
        False,
        False,
    ]
    assert [belongs_to(each, deployment) for each in (pod(), theirs, replicas)] == [
        False,
        False,
        True,
    ]


@pytest.mark.parametrize("write", [Apply, CreateOnly])
def test_a_step_waits_for_its_workloads(write: type[Apply] | type[CreateOnly]) -> None:
    """A Job that is created once is explained, too; a ready step waits for nothing."""
    job = {"kind": "Job", "metadata": {"name": "restore", "uid": "j"}}
    config = {"kind": "ConfigMap", "metadata": {"name": "settings", "uid": "c"}}
    writes = (write(job), write(config))
    plan = Plan((Step("restore", writes, ready=False), Step("ready", writes)), Status())
    assert waited_for(plan, lambda child: child) == {"restore": [job]}


async def test_pods_and_events_are_read_seldom_and_only_while_a_child_waits(
    server: ApiServer,
) -> None:
    """The first look is after a while; a new generation starts again; a ready object costs nothing."""
    clock = [0.0]
    spec = {"selector": {"matchLabels": {"app": "shop"}}, "replicas": 1}
    metadata = {"name": "shop", "namespace": "default"}
    child = server.create(STATEFUL_SET, {"metadata": metadata, "spec": spec})
    uid = child["metadata"]["uid"]
    server.create(EVENT, event(1, "Warning", "FailedCreate", "exceeded quota", about=uid))
    server.create(EVENT, event(2, "Normal", "Killing", about="other"))
    async with Client(server.endpoint) as client:
        known = Explanations(client, lambda: clock[0])
        assert await known.explain(SHOP, [child]) == {}
        assert known.due_in(SHOP) == FIRST_LOOK
        clock[0] = FIRST_LOOK
        problem = Problem("StatefulSet shop: exceeded quota", "FailedCreate")
        assert await known.explain(SHOP, [child]) == {uid: problem}
        server.create(POD, pod(owner=uid))
        status = {"phase": "Pending", "conditions": [UNSCHEDULED]}
        server.change(POD, "shop-0", {"status": status}, "default", "status")
        assert await known.explain(SHOP, [child]) == {uid: problem}
        clock[0] += known.due_in(SHOP) or 0
        assert (await known.explain(SHOP, [child]))[uid].reason == "Unschedulable"
        assert known.due_in(SHOP) == FIRST_LOOK  # a new reason: soon again
        intervals = []
        for _ in range(8):
            clock[0] += known.due_in(SHOP) or 0
            await known.explain(SHOP, [child])
            intervals.append(known.due_in(SHOP))
        assert intervals == [10, 20, 40, 80, 160, 320, MAX_INTERVAL, MAX_INTERVAL]
        child["metadata"]["generation"] += 1
        assert await known.explain(SHOP, [child]) == {}
        assert known.due_in(SHOP) == FIRST_LOOK
        assert await known.explain(SHOP, []) == {}
        assert known.due_in(SHOP) is None


async def test_objects_that_are_never_ready_cost_less_and_less(server: ApiServer) -> None:
    """In the end each is looked up every ten minutes, although each message names another pod."""
    clock, looks = [0.0], list[float]()
    child = {"kind": "StatefulSet", "metadata": {"uid": "s", "name": "shop"}, "spec": {}}
    due = {ReconcileRequest("default", f"shop-{number}"): 0.0 for number in range(50)}

    class Counted(Explanations):
        async def _look_up(self, child: JsonObject) -> Problem | None:
            looks.append(clock[0])
            return Problem(f"pod number {len(looks)} cannot start", "FailedCreate")

    async with Client(server.endpoint) as client:
        known = Counted(client, lambda: clock[0])
        while clock[0] < 3600:
            request = min(due, key=due.__getitem__)
            clock[0] = max(clock[0], due[request])
            await known.explain(request, [child])
            due[request] = clock[0] + (known.due_in(request) or 0.0)
    last = sum(at >= 3000 for at in looks)
    assert len(due) <= last <= len(due) * 1.1


async def test_a_volume_that_cannot_be_mounted_is_found_in_the_pods_events(
    server: ApiServer,
) -> None:
    """The pod itself only says `ContainerCreating`; once it is mounted, nothing is reported."""
    clock = [0.0]
    spec = {"selector": {"matchLabels": {"app": "shop"}}, "replicas": 1}
    metadata = {"name": "shop", "namespace": "default"}
    child = server.create(STATEFUL_SET, {"metadata": metadata, "spec": spec})
    uid = child["metadata"]["uid"]
    creating = server.create(POD, pod(owner=uid))
    server.change(POD, "shop-0", {"status": waits("ContainerCreating")}, "default", "status")
    about = creating["metadata"]["uid"]
    note = 'MountVolume.SetUp failed for volume "config": configmap "shop" not found'
    server.create(EVENT, event(1, "Normal", "SuccessfulCreate", about=uid))
    server.create(EVENT, event(2, "Normal", "Scheduled", about=about))
    server.create(EVENT, event(3, "Warning", "FailedMount", note, about=about))
    async with Client(server.endpoint) as client:
        known = Explanations(client, lambda: clock[0])
        await known.explain(SHOP, [child])
        clock[0] += FIRST_LOOK
        problem = Problem(f"pod shop-0: {note}", "FailedMount")
        assert await known.explain(SHOP, [child]) == {uid: problem}
        server.create(EVENT, event(4, "Normal", "Pulling", about=about))
        clock[0] += known.due_in(SHOP) or 0
        assert await known.explain(SHOP, [child]) == {}


async def test_many_waiting_objects_are_looked_up_one_after_another(server: ApiServer) -> None:
    """So many that cannot become ready cost a steady number of requests."""
    clock = [0.0]
    spec = {"selector": {"matchLabels": {"app": "shop"}}, "replicas": 1}
    metadata = {"name": "shop", "namespace": "default"}
    child = server.create(STATEFUL_SET, {"metadata": metadata, "spec": spec})
    waiting = [ReconcileRequest("default", f"shop-{number}") for number in range(20 * RATE)]
    async with Client(server.endpoint) as client:
        known = Explanations(client, lambda: clock[0])
        for request in waiting:
            await known.explain(request, [child])
        due = [known.due_in(request) or 0.0 for request in waiting]
        assert due == [FIRST_LOOK + number / RATE for number in range(len(waiting))]
        server.requests.clear()
        clock[0] = FIRST_LOOK + 1
        for request in waiting:
            await known.explain(request, [child])
        read = [each for each in server.requests.log if each.path.endswith("/pods")]
        assert len(read) == RATE + 1
