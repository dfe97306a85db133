"""Workloads have at most the allowed number of replicas.

Why: a typo in a number should not fill all nodes. Judged: replicas of the object, of its /scale
subresource (`kubectl scale`), and of autoscalers (HorizontalPodAutoscaler, KEDA's ScaledObject)
that could raise them later. The minimum does not apply to ReplicaSets that a Deployment scales
during a rollout, and replicas that an autoscaler decides count as its minimum. With a `minimum`,
the autoscalers of the namespace and the object that is scaled by /scale are looked up.

Allowed: `spec.replicas: 10`, or no `replicas` at all (the API server's default is 1).
Denied:  `spec.replicas: 11`; a HorizontalPodAutoscaler with `maxReplicas: 20`; a ScaledObject
         without `maxReplicaCount`, which means 100.
Fix: lower the number, or ask for an exception.
"""

from pydantic import Field, model_validator

from webhook.engine import PARENT, Fields, Fix, Params, Policy, Request, Violations
from webhook.policies._autoscalers import AUTOSCALERS, minimums, with_minimum
from webhook.policies._records import is_scaled_by_deployment

# The paths of the numbers, lowest first, with their defaults.
REPLICAS: dict[str, int | None] = {"spec.replicas": 1}
PATHS: dict[str, dict[str, int | None]] = {
    "HorizontalPodAutoscaler": {"spec.minReplicas": 1, "spec.maxReplicas": None},
    "ScaledObject": {"spec.minReplicaCount": 0, "spec.maxReplicaCount": 100},
    "Scale": {"spec.replicas": 0},  # the API leaves 0 out
}
WEBAPP_MINIMUM = "spec.autoscaling.min"
IDLE = "spec.idleReplicaCount"  # of a ScaledObject: replicas while nothing triggers it


class ReplicaLimits(Params):
    """The numbers of replicas that a workload may have."""

    maximum: int = Field(10, ge=0, description="maximum number of replicas")
    minimum: int = Field(0, ge=0, description="minimum number of replicas")
    allow_zero: bool = Field(
        True, description="whether a workload may have 0 replicas whatever the minimum"
    )
    tier: str = Field("production", description="name of the environment in the message")

    @model_validator(mode="after")
    def _is_possible(self) -> "ReplicaLimits":
        if self.minimum > self.maximum:
            raise ValueError("minimum must not be above maximum")
        return self


def validate(request: Request, params: ReplicaLimits) -> Violations:
    """Yield a violation for each number above the maximum, and for a minimum that is too low."""
    judged = numbers(request)
    most, least = params.maximum, params.minimum
    for path, number, origin in judged:
        if number > most:
            rule = f"{params.tier} workloads cannot exceed {most} replicas"
            fix, over = f"set it to {most} or less", number - most
            yield request.violation(
                path, number, rule, fix, found=origin, excess=over, fix_value=most
            )
    path, number, found = judged[0]
    is_allowed = number >= least or (params.allow_zero and number == 0)
    rule = f"{params.tier} workloads need at least {least} replicas"
    if not is_allowed and not _is_of_deployment(request) and not _is_scaled(request, number, least):
        fix = f"set it to {least} or more{', or to 0' if params.allow_zero else ''}"
        under = least - number
        yield request.violation(path, number, rule, fix, found=found, excess=under, fix_value=least)
    yield from judge_idle(request, least, rule, allow_zero=params.allow_zero)


def judge_idle(request: Request, minimum: int, rule: str, *, allow_zero: bool) -> Violations:
    """Yield a violation for a number of idle replicas below the minimum."""
    idle = request.integer(IDLE)
    if idle is not None and idle < minimum and not (allow_zero and idle == 0):
        excess = minimum - idle
        yield request.violation(IDLE, idle, rule, "remove it", excess=excess, fix_value=None)


def _is_scaled(request: Request, number: int, least: int) -> bool:
    """Return whether an autoscaler runs enough replicas of the workload.

    That of a WebApp with `autoscaling` is judged as its child.
    """
    if request.kind == "WebApp" and request.integer(WEBAPP_MINIMUM) is not None:
        return True
    if request.kind in PATHS and request.kind != "Scale":
        return False
    minimum = minimums(request).get((request.resource_kind, request.name))
    return with_minimum(number, minimum) >= least


def _is_of_deployment(request: Request) -> bool:
    is_scale = request.kind == "Scale" and request.resource_kind == "ReplicaSet"
    return is_scaled_by_deployment(Fields(request.lookup(PARENT)) if is_scale else request)


def numbers(request: Request) -> list[tuple[str, int, str | None]]:
    """Return the numbers of replicas, lowest first: path, number, and text for messages."""
    judged: list[tuple[str, int, str | None]] = []
    for path, default in PATHS.get(request.kind, REPLICAS).items():
        number = request.integer(path)
        if number is not None:
            judged.append((path, number, None))
        elif default is not None:
            missing = None if request.kind == "Scale" else f"missing, which means {default}"
            judged.append((path, default, missing))
    return judged


POLICY = Policy(
    "replica-limits",
    ReplicaLimits,
    validate=validate,
    kinds="scalable",
    category="capacity",
    needs=lambda params: (PARENT, AUTOSCALERS) if params.minimum else (),
    fix=Fix(True, "the same program runs, in another number"),
)
