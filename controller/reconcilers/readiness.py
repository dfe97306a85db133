"""Rollout progress of a Deployment or a StatefulSet, and its text for conditions."""

from controller.runtime.plan import Object, Problem


def progress(ready: int, wanted: int) -> str:
    """Return the condition message for pods that are not ready; it changes only with one of the numbers."""
    told = f"{ready} of {wanted} replicas are ready"
    return told if ready < wanted else f"{told}, and old ones are still to go"


def rolled_out(workload: Object | None, replicas: int) -> tuple[bool, str | Problem]:
    """Tell whether a Deployment or StatefulSet runs what it says, and what a condition is to say of that."""
    if workload is None:
        return False, ""
    status = workload.get("status") or {}
    if problem := obstacle(workload):
        return False, problem
    ready, updated = status.get("readyReplicas", 0), status.get("updatedReplicas", 0)
    is_current = status.get("observedGeneration", 0) >= workload["metadata"].get("generation", 0)
    if old := old_replicas(workload):
        return False, f"{updated} of {replicas} replicas are updated, {old} old still running"
    ready_now = is_current and ready == updated == replicas
    return ready_now, "" if ready_now else progress(min(ready, updated), replicas)


def ready_replicas(deployment: Object | None) -> int:
    """Return how many pods are ready."""
    return int(deployment.get("status", {}).get("readyReplicas", 0)) if deployment else 0


def is_rolling_out(deployment: Object) -> bool:
    """Tell whether pods are still to be replaced, by what the Deployment's own controller says, if it said anything."""
    status = deployment.get("status", {})
    if "observedGeneration" not in status:
        return False
    is_behind = status["observedGeneration"] < deployment["metadata"].get("generation", 0)
    is_short = status.get("updatedReplicas", 0) < deployment["spec"].get("replicas", 1)
    return bool(is_behind or is_short or old_replicas(deployment) > 0)


def old_replicas(workload: Object) -> int:
    """Return how many pods are of an earlier template: a Deployment keeps them until new ones are ready."""
    status = workload.get("status", {})
    return max(0, int(status.get("replicas", 0) - status.get("updatedReplicas", 0)))


def obstacle(workload: Object) -> Problem | None:
    """Return why the pods of a Deployment or StatefulSet do not come to be, where it says so."""
    if workload["spec"].get("paused") and is_rolling_out(workload):
        name = workload["metadata"]["name"]
        resume = f"kubectl rollout resume deployment/{name}"
        return Problem(f"Deployment {name} is paused, and its pods are not replaced; {resume}", "DeploymentPaused")
    for each in workload.get("status", {}).get("conditions") or ():
        wrong = {"ReplicaFailure": "True", "Progressing": "False"}.get(each["type"])
        if each["status"] == wrong:
            return Problem(each.get("message", ""), each.get("reason") or each["type"])
    return None
