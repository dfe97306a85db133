"""The ratio of limit to request is bounded.

Why: the scheduler counts requests only; containers with much higher limits overcommit their node.
Judged: containers, and a pod as a whole (`spec.resources`). An unset request equals the limit. An
unset limit is not judged: `resource-limits` requires it. Beside that policy, a ratio of 1 for cpu
and memory gives every pod the QoS class
Guaranteed: the last to be evicted.

Allowed: `resources: {requests: {cpu: 500m}, limits: {cpu: "1"}}` with `maximum: {cpu: 2}`.
Denied:  `resources: {requests: {cpu: 250m}, limits: {cpu: "1"}}`; any limit with a request of 0.
Fix: raise the request or lower the limit.
"""

from fractions import Fraction

from pydantic import Field

from config.quantities import LARGEST, MILLI
from webhook.engine import Policy, Request, Violations
from webhook.policies._resources import Amount, Completed, needs, of_all, violation


class ResourceRatios(Completed):
    """The largest ratios of limit to request."""

    maximum: dict[str, Amount] = Field(
        min_length=1, description="largest ratio of limit to request, by resource"
    )


def validate(request: Request, params: ResourceRatios) -> Violations:
    """Yield one violation for each limit too far above its request."""
    for resources in of_all(request, limit_ranges=params.limit_ranges):
        for resource, ratio in params.maximum.items():
            limit = resources.limits.get(resource)
            if limit is None:
                continue
            requested = resources.requests[resource]
            if limit.millis * MILLI > ratio.millis * requested.millis:
                found = f"{limit} with a request of {requested}"
                rule = f"a limit of {resource} must be at most {ratio} times its request"
                fix = "raise the request or lower the limit"
                excess = Fraction(limit.millis, requested.millis) if requested.millis else LARGEST
                yield violation(resources, "limits", resource, found, rule, fix, excess)


POLICY = Policy(
    "resource-ratios", ResourceRatios, validate=validate, category="capacity", needs=needs
)
