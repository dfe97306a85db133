"""Every container says how much cpu and memory it needs.

Why: without requests the scheduler takes a container for free and crowds its node, and the kubelet evicts it first.
Judged: containers and init containers of pods and of everything that makes pods, and a WebApp's resources. A limit
counts as a request of the same amount, as it does in every pod; a request of the pod as a whole (`spec.resources`)
serves for all of its containers. Ephemeral containers are left alone: the API forbids resources on them.

With `limit_ranges: true`, what the LimitRanges of the namespace will fill in counts as said; the policy can then judge
only where they can be looked up.

Allowed: `resources: {requests: {cpu: 100m, memory: 128Mi}}`, or limits alone.
Denied:  a container without `resources`, or with only one of the two.
Fix: set the missing requests.
See: https://kubernetes.io/docs/concepts/configuration/manage-resources-containers/
"""

from collections.abc import Iterator

from webhook.engine import Policy, Request, Violation
from webhook.engine.resources import Required, missing, needs


def validate(request: Request, params: Required) -> Iterator[Violation]:
    """Yield one violation for each container that lacks a required request."""
    yield from missing(request, "requests", params)


POLICY = Policy("resource-requests", Required, validate=validate, kinds="pods", category="capacity", needs=needs)
