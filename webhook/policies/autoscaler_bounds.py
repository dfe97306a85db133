"""Autoscalers keep enough replicas, and have room to scale.

Why: a HorizontalPodAutoscaler without `minReplicas` scales down to one replica, whatever the
workload's `replicas`; one with equal bounds does nothing. Judged: HorizontalPodAutoscalers, and
KEDA's ScaledObjects.

Allowed: `minReplicas: 2` with `maxReplicas: 5`.
Denied:  no `minReplicas`, which means 1; `minReplicas: 2` with `maxReplicas: 2`.
Fix: raise the bound that the message names.
"""

from pydantic import Field

from webhook.engine import Fix, Params, Policy, Request, Violations
from webhook.policies.replica_limits import numbers

KINDS = ("HorizontalPodAutoscaler", "ScaledObject")


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
    if lowest < params.minimum and not (params.allow_zero and lowest == 0):
        rule, fix = (
            f"autoscalers must keep at least {params.minimum} replicas",
            f"set it to {params.minimum} or more",
        )
        excess = params.minimum - lowest
        yield request.violation(
            lower, lowest, rule, fix, found=missing, excess=excess, mended=params.minimum
        )
    for upper, highest, _ in uppers:
        if highest - lowest < params.spread:
            enough = lowest + params.spread
            rule = f"the bounds of autoscalers must be at least {params.spread} apart"
            found, fix = f"{highest} with a lower bound of {lowest}", f"set it to {enough} or more"
            yield request.violation(
                upper, highest, rule, fix, found=found, excess=enough - highest, mended=enough
            )


POLICY = Policy(
    "autoscaler-bounds",
    AutoscalerBounds,
    validate=validate,
    kinds=KINDS,
    category="capacity",
    fix=Fix(True, "the same program runs, in another number"),
)
