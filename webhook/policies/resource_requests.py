"""Every container has CPU and memory requests.

Why: the scheduler counts a container without requests as 0 and overcommits its node, and the
kubelet evicts it first.
Judged: all containers but ephemeral ones, on which the API forbids resources. A limit counts as a
request of the same amount, as in every pod; a pod-level request (`spec.resources`) counts for all
of the pod's containers.

Allowed: `resources: {requests: {cpu: 100m, memory: 128Mi}}`, or limits alone.
Denied:  a container without `resources`, or with only one of the two.
Fix: set the missing requests.
See: https://kubernetes.io/docs/concepts/configuration/manage-resources-containers/
"""

from webhook.engine import Policy, Request, Violations
from webhook.policies._resources import Required, missing, needs


def validate(request: Request, params: Required) -> Violations:
    """Return one violation for each container that lacks a required request."""
    return missing(request, "requests", params)


POLICY = Policy("resource-requests", Required, validate=validate, category="capacity", needs=needs)
