"""No workload runs more replicas than its environment allows.

Why: a typo in a number should not take all nodes. Judged wherever a number of replicas enters the cluster: on the
object, on its /scale subresource (`kubectl scale`), and on autoscalers that could raise it later.

Allowed: `spec.replicas: 10`, or no `replicas` at all (the API server's default is 1).
Denied:  `spec.replicas: 11`; a HorizontalPodAutoscaler with `maxReplicas: 20`.
Fix: lower the number, or ask for an exception.
"""

from collections.abc import Iterator

from pydantic import Field

from webhook.engine import Params, Policy, Request, Violation

REPLICA_PATHS = {"HorizontalPodAutoscaler": ("spec.minReplicas", "spec.maxReplicas")}


class ReplicaLimits(Params):
    """How far a workload may be scaled."""

    maximum: int = Field(10, ge=0, description="highest number of replicas")
    tier: str = Field("production", description="what the message calls these workloads")


def validate(request: Request, params: ReplicaLimits) -> Iterator[Violation]:
    """Yield one violation for each number above the maximum."""
    for path in REPLICA_PATHS.get(request.kind, ("spec.replicas",)):
        found = request.integer(path)
        if found is not None and found > params.maximum:
            yield Violation(
                path,
                found=found,
                rule=f"{params.tier} workloads cannot exceed {params.maximum} replicas",
                fix=f"set it to {params.maximum} or less",
                excess=found - params.maximum,
            )


POLICY = Policy("replica-limits", ReplicaLimits, validate=validate, kinds="scalable", category="capacity")
