"""Every container has CPU and memory limits.

Why: a container without limits can starve every other container on its node. Judged: all containers
but ephemeral ones, on which the API forbids resources. A pod-level limit (`spec.resources`) counts
for all of the pod's containers.

Allowed: `resources: {limits: {cpu: 500m, memory: 512Mi}}`.
Denied:  a container without `resources.limits`, or with only one of the two.
Fix: set the missing limits.
"""

from webhook.engine import Policy, Request, Violations
from webhook.policies._resources import Required, missing, needs


def validate(request: Request, params: Required) -> Violations:
    """Return one violation for each container that lacks a required limit."""
    return missing(request, "limits", params)


POLICY = Policy("resource-limits", Required, validate=validate, category="capacity", needs=needs)
