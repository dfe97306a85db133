"""Pods have the QoS class Guaranteed: each container's requests equal its limits.

Why: a Guaranteed pod is the last to be evicted and never competes for its requests. Judged: all containers but
ephemeral ones; pod-level resources (`spec.resources`) alone decide the class of a pod that has them. An unset request
equals the limit. With `resources: [memory]` other pods cannot cause an out-of-memory kill, and CPU may burst.

Allowed: `resources: {limits: {cpu: "1", memory: 1Gi}}`; requests of the same amounts, in any notation (`1000m`).
Denied:  a limit missing or 0; a request below its limit.
Fix: set both, to the same amount.
See: https://kubernetes.io/docs/concepts/workloads/pods/pod-qos/
"""

from typing import Literal

from pydantic import Field

from webhook.engine import Policy, Request, Violations
from webhook.policies._resources import Completed, needs, of_containers, of_pod, violation


class QosGuaranteed(Completed):
    """Which resources must be guaranteed."""

    resources: list[Literal["cpu", "memory"]] = Field(
        ["cpu", "memory"], min_length=1, description="resources whose request must equal the limit"
    )


def validate(request: Request, params: QosGuaranteed) -> Violations:
    """Yield one violation for each resource of each container that is not guaranteed."""
    whole = of_pod(request)
    containers = of_containers(request, limit_ranges=params.limit_ranges)
    for each in [whole] if whole is not None and whole.requests else containers:
        for resource in params.resources:
            limit = each.limits.get(resource)
            rule = f"{resource} must be guaranteed, its request equal to its limit"
            if limit is None or not limit.millis:
                found = "missing" if limit is None else limit.text
                yield violation(each, "limits", resource, found, rule, "set it, and no other request")
            elif (asked := each.requests[resource]).millis != limit.millis:
                found = f"{asked} with a limit of {limit}"
                yield violation(each, "requests", resource, found, rule, "set both to the same amount")


POLICY = Policy("qos-guaranteed", QosGuaranteed, validate=validate, category="capacity", needs=needs)
