"""Readiness of Pods, Deployments and StatefulSets, and its text for conditions."""

from datetime import datetime

from config.api.meta import Condition
from controller.runtime.obstacles import failing_condition
from controller.runtime.plan import Problem
from kube.resource import JsonObject


def waiting(workload: JsonObject | None, ready: int, desired: int) -> str | Problem:
    """Return the condition's text about a Deployment that is not ready."""
    return (workload and obstacle(workload)) or progress(ready, desired)


def progress(ready: int, desired: int) -> str:
    """Return the condition message for pods that are not ready.

    It changes only with one of the numbers.
    """
    if ready > desired:
        return f"{ready} replicas are ready, and {desired} are desired"
    text = f"{ready} of {desired} replicas are ready"
    return text if ready < desired else f"{text}, some are being replaced"


def rolled_out(workload: JsonObject | None, replicas: int) -> tuple[bool, str | Problem]:
    """Return whether a Deployment or StatefulSet is rolled out, and the text for the condition."""
    if workload is None:
        return False, ""
    status = workload.get("status") or {}
    if problem := obstacle(workload):
        return False, problem
    ready, updated = status.get("readyReplicas", 0), status.get("updatedReplicas", 0)
    is_current = status.get("observedGeneration", 0) >= workload["metadata"].get("generation", 0)
    if old := old_replicas(workload):
        return False, f"{updated} of {replicas} replicas are updated, {old} of an earlier revision"
    ready_now = is_current and ready == updated == replicas
    return ready_now, "" if ready_now else progress(min(ready, updated), replicas)


def ready_replicas(deployment: JsonObject | None) -> int:
    """Return the number of ready pods."""
    return int(deployment.get("status", {}).get("readyReplicas", 0)) if deployment else 0


def is_rolling_out(deployment: JsonObject) -> bool:
    """Return whether pods of an earlier template remain, by the status of the Deployment."""
    status = deployment.get("status", {})
    if "observedGeneration" not in status:
        return False
    is_behind = status["observedGeneration"] < deployment["metadata"].get("generation", 0)
    is_short = status.get("updatedReplicas", 0) < deployment["spec"].get("replicas", 1)
    return bool(is_behind or is_short or old_replicas(deployment) > 0)


def old_replicas(workload: JsonObject) -> int:
    """Return the number of pods with an earlier template.

    A Deployment keeps them until new ones are ready.
    """
    status = workload.get("status", {})
    return max(0, int(status.get("replicas", 0) - status.get("updatedReplicas", 0)))


def obstacle(workload: JsonObject) -> Problem | None:
    """Return the reason in a workload's conditions why its pods cannot be created."""
    if workload["spec"].get("paused") and is_rolling_out(workload):
        name = workload["metadata"]["name"]
        resume = f"kubectl rollout resume deployment/{name}"
        return Problem(
            f"Deployment {name} is paused, and its pods are not replaced; {resume}",
            "DeploymentPaused",
        )
    return failing_condition(workload)


def deployment_conditions(
    deployment: JsonObject | None, *, is_ready: bool, now: datetime
) -> list[Condition]:
    """Return the conditions Available and Progressing of a parent, as its Deployment has them.

    They change only with the Deployment's readiness and availability.
    """
    is_available = deployment is not None and has_condition(deployment, "Available")
    failed = None if deployment is None or is_ready else failing_condition(deployment)
    available = "MinimumReplicasAvailable" if is_available else "MinimumReplicasUnavailable"
    progress = "RolledOut" if is_ready else failed.reason if failed else "RollingOut"
    return [
        Condition.of("Available", is_available, available, now),
        Condition.of("Progressing", failed is None, progress, now),
    ]


def is_pod_ready(pod: JsonObject | None) -> bool:
    """Return whether a Pod exists and its containers are ready."""
    return pod is not None and has_condition(pod, "Ready")


def has_condition(object: JsonObject, type: str) -> bool:
    """Return whether a condition of an object is True."""
    conditions = object.get("status", {}).get("conditions") or ()
    return any(each["type"] == type and each["status"] == "True" for each in conditions)
