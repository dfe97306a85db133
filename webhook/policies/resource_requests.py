"""Every container has CPU and memory requests.

Why: the scheduler counts a container without requests as 0 and overcommits its node, and the kubelet evicts it first.
Judged: containers and init containers of pods and of workloads with a pod template, and a WebApp's resources. A limit
counts as a request of the same amount, as in every pod; a pod-level request (`spec.resources`) counts for all of its
containers. Ephemeral containers are ignored: the API forbids resources on them.

With `limit_ranges: true`, defaults from the namespace's LimitRanges, which are looked up, count as set.

Allowed: `resources: {requests: {cpu: 100m, memory: 128Mi}}`, or limits alone.
Denied:  a container without `resources`, or with only one of the two.
Fix: set the missing requests.
See: https://kubernetes.io/docs/concepts/configuration/manage-resources-containers/
"""

from webhook.engine import Policy, Request, Violations
from webhook.policies._resources import Required, missing, needs


def validate(request: Request, params: Required) -> Violations:
    """Yield one violation for each container that lacks a required request."""
    yield from missing(request, "requests", params)


POLICY = Policy("resource-requests", Required, validate=validate, category="capacity", needs=needs)
