"""The replicas that autoscalers give to workloads at least."""

from collections.abc import Mapping

from webhook.engine import Fields, Request
from webhook.engine.look_ups import read_each

AUTOSCALERS = "autoscalers"  # look-up: HorizontalPodAutoscalers and ScaledObjects of the namespace

WorkloadName = tuple[str | None, str | None]  # kind and name


def minimums(request: Request) -> Mapping[WorkloadName, int]:
    """Return the replicas of each workload of the namespace that an autoscaler scales.

    Where several scale one, the highest minimum counts.
    """
    lowest: dict[WorkloadName, int] = {}
    for workload, minimum in read_each(request.lookup(AUTOSCALERS), _read):
        lowest[workload] = max(minimum, lowest.get(workload, 0))
    return lowest


def with_minimum(replicas: int, minimum: int | None) -> int:
    """Return how many replicas run at least: none where a workload is scaled to 0."""
    return replicas if not replicas or minimum is None else max(replicas, minimum)


def _read(autoscaler: Fields) -> tuple[WorkloadName, int]:
    target = autoscaler.fields("spec.scaleTargetRef")
    if autoscaler.string("kind") == "ScaledObject":
        lowest = autoscaler.integer("spec.minReplicaCount") or 0
        idle = autoscaler.integer("spec.idleReplicaCount")
        minimum = lowest if idle is None else min(lowest, idle)
        return (target.string("kind") or "Deployment", target.string("name")), minimum
    least = autoscaler.integer("spec.minReplicas")
    return (target.string("kind"), target.string("name")), 1 if least is None else least
