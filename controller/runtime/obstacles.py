"""Why a child does not become ready: its conditions, its pods and the events about them.

Pure functions over what was read. They know Kubernetes' workloads, and no kind of Gatewright.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from controller.runtime.plan import Apply, CreateOnly, Plan, Problem
from kube.resource import JsonObject

WORKLOADS = frozenset({"Deployment", "StatefulSet", "DaemonSet", "Job"})
CLAIM = "PersistentVolumeClaim"
STARTING = frozenset({"ContainerCreating", "PodInitializing"})  # a container that waits normally
PULL_FAILED = "ImagePullBackOff"
# The kubelet alternates between these two; the second repeats the first's message.
PULL_ERRORS = frozenset({"ErrImagePull", PULL_FAILED})
CRASHES = "CrashLoopBackOff"
TOO_LATE = "ProgressDeadlineExceeded"  # says that pods are not ready, and not why
# The conditions that report a problem, with the status that does.
FAILING = {"ReplicaFailure": "True", "Progressing": "False", "Failed": "True"}


def waited_for(
    plan: Plan, stored: Callable[[JsonObject], JsonObject | None]
) -> dict[str, list[JsonObject]]:
    """Return the workloads that each step of a plan waits for, without a reason of its own.

    `stored` returns the child that a planned object is stored as.
    """
    awaited = {}
    for step in plan.steps:
        if step.ready or (step.problem and step.problem.reason != TOO_LATE):
            continue
        objects = [each.object for each in step.writes if isinstance(each, Apply | CreateOnly)]
        workloads = [each for each in objects if each["kind"] in WORKLOADS]
        children = (stored(each) for each in workloads)
        awaited[step.name] = [child for child in children if child is not None]
    return awaited


def failing_condition(workload: JsonObject) -> Problem | None:
    """Return the problem that a Deployment or a Job reports itself."""
    for condition in workload.get("status", {}).get("conditions") or ():
        if condition["status"] == FAILING.get(condition["type"]):
            reason = condition.get("reason") or condition["type"]
            return Problem(condition.get("message", ""), reason)
    return None


def obstacle_of_pods(pods: Iterable[JsonObject]) -> Problem | None:
    """Return what keeps the first stuck pod, by name, from running."""
    return next(filter(None, map(_obstacle_of_pod, _by_name(pods))), None)


def starting_pod(pods: Iterable[JsonObject]) -> JsonObject | None:
    """Return a scheduled pod whose containers wait without a reason, such as for a volume."""
    return next((pod for pod in _by_name(pods) if _is_starting(pod)), None)


def obstacle_of_events(events: Iterable[JsonObject], subject: str) -> Problem | None:
    """Return the latest event about an object, if it is a warning.

    After a repaired problem, a later event is a normal one.
    """
    latest = max(events, key=_age, default=None)
    if latest is None or latest.get("type") != "Warning":
        return None
    note = " ".join(str(latest.get("note") or "").split())
    return Problem(f"{subject}: {note}", str(latest.get("reason") or "Failed"))


def claims_of(pod: JsonObject) -> list[str]:
    """Return the names of the claims that a pod mounts."""
    volumes: Sequence[JsonObject] = pod["spec"].get("volumes") or ()
    return [
        volume["persistentVolumeClaim"]["claimName"]
        for volume in volumes
        if "persistentVolumeClaim" in volume
    ]


def unscheduled_pod(pods: Iterable[JsonObject]) -> JsonObject | None:
    """Return a pod that the scheduler has no node for."""
    return next((pod for pod in _by_name(pods) if _unscheduled_condition(pod)), None)


def belongs_to(pod: JsonObject, workload: JsonObject) -> bool:
    """Return whether a pod of a workload's selector is its own; a Deployment's has a ReplicaSet."""
    metadata = workload["metadata"]
    for owner in pod["metadata"].get("ownerReferences") or ():
        if owner.get("controller"):
            is_between = (
                workload["kind"] == "Deployment"
                and owner["kind"] == "ReplicaSet"
                and owner["name"].startswith(f"{metadata['name']}-")
            )
            return bool(is_between or owner["uid"] == metadata["uid"])
    return False


def _age(event: JsonObject) -> tuple[str, int]:
    """Return when an event was seen last, to the second, and its version."""
    series = (event.get("series") or {}).get("lastObservedTime")
    time = series or event.get("deprecatedLastTimestamp") or event.get("eventTime")
    metadata = event["metadata"]
    seen = str(time or metadata.get("creationTimestamp") or "")[:19]
    return seen, int(metadata.get("resourceVersion") or 0)


def _by_name(pods: Iterable[JsonObject]) -> list[JsonObject]:
    alive = (pod for pod in pods if "deletionTimestamp" not in pod["metadata"])
    return sorted(alive, key=lambda pod: str(pod["metadata"]["name"]))


def _obstacle_of_pod(pod: JsonObject) -> Problem | None:
    name, status = pod["metadata"]["name"], pod.get("status", {})
    if status.get("phase") == "Failed":
        message = status.get("message") or "its containers failed"
        return Problem(f"pod {name} failed: {message}", status.get("reason") or "PodFailed")
    if condition := _unscheduled_condition(pod):
        reason = condition.get("reason") or "Unschedulable"
        return Problem(f"pod {name} is not scheduled: {condition.get('message', '')}", reason)
    for container in _containers(status):
        waiting = container.get("state", {}).get("waiting") or {}
        if waiting and waiting.get("reason") not in STARTING | {None}:
            return _obstacle_of_container(name, container, waiting)
    return None


def _obstacle_of_container(pod: str, container: JsonObject, waiting: JsonObject) -> Problem:
    name, reason = container["name"], waiting["reason"]
    message = " ".join(str(waiting.get("message") or reason).split())
    if reason in PULL_ERRORS:
        cause = message.partition("ErrImagePull: ")[2] or message
        image = container.get("image") or "its image"
        return Problem(f"pod {pod} cannot pull {image}: {cause}", PULL_FAILED)
    if reason == CRASHES:
        ended = (container.get("lastState") or {}).get("terminated") or {}
        code = f" with exit code {ended['exitCode']}" if "exitCode" in ended else ""
        message = (
            f"pod {pod}: container {name} ends{code} each time it starts; "
            f"kubectl logs {pod} -c {name} --previous"
        )
        return Problem(message, reason)
    return Problem(f"pod {pod}: container {name} cannot start: {message}", reason)


def _containers(status: JsonObject) -> Iterator[JsonObject]:
    for field in ("initContainerStatuses", "containerStatuses"):
        yield from status.get(field) or ()


def _unscheduled_condition(pod: JsonObject) -> dict[str, Any] | None:
    for condition in pod.get("status", {}).get("conditions") or ():
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return dict(condition)
    return None


def _is_starting(pod: JsonObject) -> bool:
    status = pod.get("status", {})
    if status.get("phase") != "Pending" or _unscheduled_condition(pod):
        return False
    waiting = [each.get("state", {}).get("waiting") or {} for each in _containers(status)]
    return not waiting or any(each.get("reason") in STARTING for each in waiting)
