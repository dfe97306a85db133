"""Autoscalers keep enough replicas, and have room to scale.

Why: a HorizontalPodAutoscaler without `minReplicas` scales down to one replica, whatever the
workload's `replicas`; one with equal bounds does nothing. Judged: HorizontalPodAutoscalers, and
KEDA's ScaledObjects with their `idleReplicaCount`.

Allowed: `minReplicas: 2` with `maxReplicas: 5`.
Denied:  no `minReplicas`, which means 1; `minReplicas: 2` with `maxReplicas: 2`.
Fix: raise the bound that the message names.
"""

from pydantic import Field

from webhook.engine import Fix, Params, Policy, Request, Violation, Violations
from webhook.policies.replica_limits import judge_idle, numbers


class AutoscalerBounds(Params):
    """How far autoscalers may go down, and how far their bounds lie apart."""

    minimum: int = Field(2, ge=0, description="minimum of minReplicas")
    allow_zero: bool = Field(
        True, description="whether a minimum of 0 (scale to zero between loads) is allowed"
    )
    spread: int = Field(
        1, ge=0, description="by how many replicas the upper bound must exceed the lower one"
    )


def validate(request: Request, params: AutoscalerBounds) -> Violations:
    """Yield a violation for too low a lower bound, and for bounds too near to each other."""
    (lower, lowest, missing), *uppers = numbers(request)
    enough = params.minimum
    rule = f"autoscalers must keep at least {enough} replicas"
    if lowest < enough and not (params.allow_zero and lowest == 0):
        yield _too_low(request, lower, lowest, enough, rule, missing)
    yield from judge_idle(request, enough, rule, allow_zero=params.allow_zero)
    for upper, highest, _ in uppers:
        if highest - lowest < params.spread:
            rule = f"the bounds of autoscalers must be at least {params.spread} apart"
            found = f"{highest} with a lower bound of {lowest}"
            yield _too_low(request, upper, highest, lowest + params.spread, rule, found)


def _too_low(
    request: Request, path: str, number: int, enough: int, rule: str, found: str | None
) -> Violation:
    fix, excess = f"set it to {enough} or more", enough - number
    return request.violation(path, number, rule, fix, found=found, excess=excess, fix_value=enough)


POLICY = Policy(
    "autoscaler-bounds",
    AutoscalerBounds,
    validate=validate,
    kinds=("HorizontalPodAutoscaler", "ScaledObject"),
    category="capacity",
    fix=Fix(True, "the same program runs, in another number"),
)
